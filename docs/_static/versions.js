// Fills the list of versions from versions.json, which docs/build_version.py writes beside the
// folders of the versions. A site without it shows its own version only.
addEventListener("DOMContentLoaded", async () => {
  const list = document.getElementById("versions");
  const own = list.value;
  const root = new URL(list.dataset.root + "../", location.href);
  let versions = [own];
  try {
    versions = await (await fetch(new URL("versions.json", root))).json();
  } catch {}
  if (!versions.includes(own)) versions.unshift(own);
  list.replaceChildren(...versions.map((name) => new Option(name, name, name === own, name === own)));
  list.disabled = versions.length < 2;
  list.addEventListener("change", async () => {
    const page = new URL(`${list.value}/${list.dataset.page}`, root);
    const found = await fetch(page, { method: "HEAD" }).then((answer) => answer.ok, () => false);
    location.href = found ? page : new URL(`${list.value}/`, root);
  });
});
