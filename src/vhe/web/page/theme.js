"use strict";
// Light or dark colours: the system setting, unless the button #theme overrides it; the choice is stored.
// The dark rules are in media queries, which the choice enables or disables.

const theme = {
  system: matchMedia("(prefers-color-scheme: dark)"),
  rules: [...document.styleSheets].flatMap((sheet) => [...sheet.cssRules])
    .filter((rule) => rule instanceof CSSMediaRule && rule.conditionText.includes("prefers-color-scheme")),
  listeners: [],
  chosen: null,

  get dark() { return (this.chosen ?? (this.system.matches ? "dark" : "light")) === "dark"; },

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

try { theme.chosen = localStorage.getItem("vhe-theme"); } catch { /* then the system setting applies */ }
if (!["light", "dark"].includes(theme.chosen)) theme.chosen = null;
theme.apply();
theme.system.addEventListener("change", () => theme.apply());
addEventListener("DOMContentLoaded", () => {
  theme.apply();
  document.getElementById("theme").onclick = () => {
    theme.chosen = theme.dark ? "light" : "dark";
    try { localStorage.setItem("vhe-theme", theme.chosen); } catch { /* storage may be disabled */ }
    theme.apply();
  };
});
