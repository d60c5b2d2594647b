"use strict";
// Requests to the server of the explorer.

// The vertices that the page was loaded with, which numbers in requests and answers refer to; null: not loaded yet.
let loadedVertices = null; // {numbering, count}

const checkNumbering = (header) => {
  if (!header || !loadedVertices) return;
  const [numbering, count] = header.split(",").map(Number), moved = numbering !== loadedVertices.numbering;
  if (moved || count !== loadedVertices.count) byId("changed").hidden = false;
  if (moved) throw new Error("The network has changed; reload the page.");
};

const request = async (path, options = {}) => {
  let response;
  try {
    response = await fetch(path, { cache: "no-store", ...options });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Error("No connection to the server. Is vhe serve running?");
  }
  checkNumbering(response.headers.get("vhe-numbering"));
  const body = response.status === 204 ? null : await response.json();
  if (!response.ok) throw new Error(body.error);
  return body;
};

const send = (method, path, content) => request(path, content === undefined ? { method } : {
  method, headers: { "Content-Type": "application/json" }, body: JSON.stringify(content),
});

const pause = (seconds) => new Promise((resume) => { setTimeout(resume, 1000 * seconds); });

const showError = (text) => byId("status").replaceChildren(element("span", { className: "error", textContent: text }));
