"use strict";
// Light or dark: as the system says, until a button (#theme) chooses; the choice is kept. The rules
// for dark stand in one media query, which the choice switches on or off.

const theme = {
  system: matchMedia("(prefers-color-scheme: dark)"),
  rules: [...document.styleSheets].flatMap((sheet) => [...sheet.cssRules])
    .filter((rule) => rule instanceof CSSMediaRule && rule.conditionText.includes("prefers-color-scheme")),
  listeners: [],
  chosen: null,

  get dark() { return (this.chosen ?? (this.system.matches ? "dark" : "light")) === "dark"; },

  choose(name) {
    this.chosen = name;
    try { localStorage.setItem("vhe-theme", name); } catch { /* a browser may forbid to keep things */ }
    this.apply();
  },

  apply() {
    if (this.chosen) {
      for (const rule of this.rules) rule.media.mediaText = this.dark ? "all" : "not all";
      document.documentElement.style.colorScheme = this.chosen;
    }
    const button = document.getElementById("theme");
    if (button) button.setAttribute("aria-label", this.dark ? "Light colours" : "Dark colours");
    for (const listener of this.listeners) listener();
  },
};

try { theme.chosen = localStorage.getItem("vhe-theme"); } catch { /* then as the system says */ }
if (!["light", "dark"].includes(theme.chosen)) theme.chosen = null;
theme.apply();
theme.system.addEventListener("change", () => theme.apply());
addEventListener("DOMContentLoaded", () => {
  theme.apply();
  document.getElementById("theme")?.addEventListener("click", () => theme.choose(theme.dark ? "light" : "dark"));
});
