"use strict";
// Requests to the server of the explorer.

const request = async (path, options = {}) => {
  let response;
  try {
    response = await fetch(path, { cache: "no-store", ...options });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Error("No connection to the server. Is vhe serve running?");
  }
  const body = response.status === 204 ? null : await response.json();
  if (!response.ok) throw new Error(body.error);
  return body;
};

const send = (method, path, content) => request(path, content === undefined ? { method } : {
  method, headers: { "Content-Type": "application/json" }, body: JSON.stringify(content),
});

const pause = (seconds) => new Promise((resume) => { setTimeout(resume, 1000 * seconds); });
