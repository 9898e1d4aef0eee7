// Keys: "/" goes to the search; "n" and "p" go to the next and the previous part of a long list.
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const target = event.target;
  if (target instanceof HTMLElement && target.closest("input, textarea, select, [contenteditable]")) return;
  if (event.key === "/") {
    event.preventDefault();
    document.querySelector('[role="search"] input')?.focus();
  } else if (event.key === "n" || event.key === "p") {
    document.querySelector(`a[rel="${event.key === "n" ? "next" : "prev"}"]`)?.click();
  }
});
