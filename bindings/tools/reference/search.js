// SPDX-License-Identifier: Apache-2.0
// Finds names as they are typed: those that begin with it first, then those that have it inside. Arrows choose, Enter goes.
"use strict";
const up = document.body.dataset.up;
const field = document.getElementById("search");
const list = document.getElementById("found");
let chosen = 0;

function rank(name, word) {
  const at = name.toLowerCase().indexOf(word);
  return at < 0 ? -1 : name.length === word.length ? 0 : at === 0 ? 1 : /[_/]/.test(name[at - 1]) ? 2 : 3;
}

function choose(index) {
  const items = list.querySelectorAll("a");
  if (items.length === 0) return;
  chosen = (index + items.length) % items.length;
  items.forEach((item, i) => item.classList.toggle("chosen", i === chosen));
  items[chosen].scrollIntoView({ block: "nearest" });
}

field.addEventListener("input", () => {
  const word = field.value.trim().toLowerCase();
  const matches = word === "" ? [] : names
    .map((entry) => [rank(entry[0], word), entry])
    .filter((match) => match[0] >= 0)
    .sort((a, b) => a[0] - b[0] || a[1][0].length - b[1][0].length)
    .slice(0, 30);
  list.replaceChildren(...matches.map(([, [name, page, kind]]) => {
    const item = document.createElement("li"), link = document.createElement("a"), note = document.createElement("small");
    link.href = up + page;
    link.append(name, note);
    note.textContent = kind;
    item.append(link);
    return item;
  }));
  choose(0);
});

field.addEventListener("keydown", (event) => {
  if (event.key === "ArrowDown") choose(chosen + 1);
  else if (event.key === "ArrowUp") choose(chosen - 1);
  else if (event.key === "Escape") list.replaceChildren();
  else if (event.key === "Enter") list.querySelectorAll("a")[chosen]?.click();
  else return;
  event.preventDefault();
});

document.addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.target === field) return;
  event.preventDefault();
  field.focus();
});
