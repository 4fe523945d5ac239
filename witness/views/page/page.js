"use strict";
// What agents print is hostile: it enters the page by textContent alone.
const at = (id) => document.getElementById(id);
let rows = [], chosen = "", log = [];

function make(tag, text, kind) {
  const made = document.createElement(tag);
  made.textContent = text;
  if (kind) made.className = kind;
  return made;
}

function draw() {
  const wanted = at("wanted").value.toLowerCase();
  const found = [];
  for (const row of rows) {
    if (!row.run) { found.push(make("h2", row.name)); continue; }
    if (!(row.name + " " + row.words).toLowerCase().includes(wanted)) continue;
    const line = make("button", "", row.section === "needs you" || row.section === "stuck" ? "row need" : "row");
    line.append(make("b", row.name), make("span", row.words));
    line.onclick = () => { chosen = row.run; about(); };
    found.push(line);
  }
  at("list").replaceChildren(...found);
}

function drawLog() {
  const wanted = at("search").value.toLowerCase();
  at("log").textContent = log.filter((line) => line.toLowerCase().includes(wanted)).join("\n");
}

async function about() {
  at("about").hidden = !chosen;
  if (!chosen) return;
  const run = chosen;
  const answer = await fetch("/polecat?run=" + encodeURIComponent(run));
  if (run !== chosen) return;
  if (!answer.ok) { at("details").textContent = await answer.text(); return; }
  const told = await answer.json();
  at("name").textContent = told.name;
  at("details").textContent = told.details.join("\n");
  at("screen").textContent = told.screen.join("\n");
  log = told.log;
  drawLog();
}

at("wanted").oninput = draw;
at("search").oninput = drawLog;
at("close").onclick = () => { chosen = ""; about(); };
const source = new EventSource("/events");
source.onmessage = (event) => {
  const told = JSON.parse(event.data);
  rows = told.rows;
  at("counts").textContent = told.counts;
  at("witness").textContent = told.witness;
  draw();
  about();
};
source.onerror = () => { at("witness").textContent = "no connection; trying again"; };
