// Narrows the list of endpoints while typing. The page works without it.
const find = document.getElementById("find");

if (find) {
  find.hidden = false;
  find.addEventListener("input", () => {
    const words = find.value.toLowerCase().split(/\s+/);
    for (const item of document.querySelectorAll("[data-find]")) {
      const text = item.dataset.find.toLowerCase();
      item.hidden = !words.every((word) => text.includes(word));
    }
  });
}
