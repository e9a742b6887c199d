// Parts of a page that stay up to date: <section data-live="/overview/live" data-every="2000">.
// While the page is visible, each part is fetched every `data-every` milliseconds and replaces the former one.
// Without JavaScript, the pages work and show the state at the time when they were loaded.
"use strict";

function refresh(part) {
  if (document.hidden || part.contains(document.activeElement)) return Promise.resolve();
  return fetch(part.dataset.live, { headers: { "X-Fragment": "1" }, cache: "no-store" })
    .then((answer) => {
      if (answer.status === 401) location.assign("/login?over=1");
      return answer.text(); // an error page replaces the part, too
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

// Scroll a navigation that is wider than the screen to the link of the current page.
document.querySelectorAll("nav [aria-current]").forEach((here) => {
  const nav = here.parentElement;
  nav.scrollLeft = here.offsetLeft - nav.offsetLeft - (nav.clientWidth - here.offsetWidth) / 2;
});
