// Parts of a page that stay up to date: <section data-live="/overview/live" data-every="2000">.
// Each is fetched and put in the place of what it was, while somebody looks at the page. Without this file
// the pages work as well: they show what was so when they were loaded.
"use strict";

function refresh(part) {
  if (document.hidden || part.contains(document.activeElement)) return Promise.resolve();
  return fetch(part.dataset.live, { headers: { "X-Fragment": "1" }, cache: "no-store" })
    .then((answer) => {
      if (answer.status === 401) location.assign("/login?over=1");
      return answer.text(); // where something does not answer, it says so
    })
    .then((text) => {
      if (part.fetched !== text) part.innerHTML = part.fetched = text;
      part.classList.remove("stale");
    })
    .catch(() => part.classList.add("stale"));
}

function follow(part) {
  const every = Number(part.dataset.every || 2000);
  const again = () => refresh(part).finally(() => setTimeout(again, every));
  setTimeout(again, "now" in part.dataset ? 0 : every);
  document.addEventListener("visibilitychange", () => refresh(part));
}

document.querySelectorAll("[data-live]").forEach(follow);

// Where the navigation is wider than the screen, it begins with where one is.
document.querySelectorAll("nav [aria-current]").forEach((here) => {
  const nav = here.parentElement;
  nav.scrollLeft = here.offsetLeft - nav.offsetLeft - (nav.clientWidth - here.offsetWidth) / 2;
});
