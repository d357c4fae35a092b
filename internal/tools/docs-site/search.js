// The search over all pages: every word must occur. What has them in its heading comes first.
(() => {
  const root = document.body.dataset.root;
  const input = document.getElementById("search");
  const found = document.getElementById("found");
  const most = 20;

  for (const p of pages) {
    p.title = `${p.page} ${p.heading ?? ""}`.toLowerCase();
    p.all = `${p.title} ${p.text}`.toLowerCase();
  }

  const search = (text) => {
    const words = text.toLowerCase().split(/\s+/).filter(Boolean);
    if (words.length === 0) return [];
    const rank = (p) => words.filter((w) => p.title.includes(w)).length;
    return pages
      .filter((p) => words.every((w) => p.all.includes(w)))
      .sort((a, b) => rank(b) - rank(a))
      .slice(0, most);
  };

  const item = (title, detail, href) => {
    const li = document.createElement("li");
    const a = document.createElement(href ? "a" : "span");
    if (href) a.href = href;
    a.append(title);
    if (detail) {
      const small = document.createElement("small");
      small.append(detail);
      a.append(small);
    }
    li.append(a);
    return li;
  };

  input.addEventListener("input", () => {
    const hits = search(input.value);
    found.hidden = input.value.trim() === "";
    found.replaceChildren(
      ...(hits.length > 0
        ? hits.map((p) => item(p.heading ?? p.page, p.heading ? p.page : "", root + p.url))
        : [item("Nothing found", "Try fewer or other words.")]),
    );
  });
})();
