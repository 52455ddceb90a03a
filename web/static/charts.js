// Charts have the times of the reader's zone, which the server draws: without this
// file in UTC, and the page says so.

const place = document.querySelector("[data-zone]");
const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
const cookie = `${place?.dataset.zoneCookie}=${zone}`;

// Where cookies are refused, or the server does not know the zone, UTC stays.
if (place && zone && zone !== place.dataset.zone && !document.cookie.split("; ").includes(cookie)) {
  document.cookie = `${cookie}; path=/admin; max-age=31536000; samesite=strict${location.protocol === "https:" ? "; secure" : ""}`;
  if (document.cookie.split("; ").includes(cookie)) location.reload();
}
