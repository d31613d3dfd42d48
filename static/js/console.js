// Conveniences only: every page works without this file.
document.documentElement.classList.add("scripted");

const year = 31536000;
// Not percent-encoded, because the server does not decode cookies: "Europe/Berlin" keeps its slash.
const remember = (name, value) => {
  document.cookie = `${name}=${value}; path=/; max-age=${year}; samesite=lax`;
};

// Times are rendered by the server in the reader's zone, which only the browser knows.
remember("tz", Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC");

const changeTheme = () => {
  const root = document.documentElement;
  const isDark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = isDark ? "light" : "dark";
  remember("theme", root.dataset.theme);
};

// Signing in changes the CSRF token. Forms of pages that were open before send the new one, so that they are not refused.
const token = () => /(?:^|; )csrftoken=([^;]+)/.exec(document.cookie)?.[1];
document.addEventListener("submit", ({ target }) => {
  const field = target.querySelector("[name=csrfmiddlewaretoken]");
  if (field && token()) field.value = token();
}, true);

// A form is not sent twice: on a slow connection a second click created a second instance. After a while, or after going back, it can be
// sent again. Until then the bar at the top shows that it is on its way.
let sent = new WeakSet();
const showSending = (isSending) => document.getElementById("progress")?.classList.toggle("htmx-request", isSending);
document.addEventListener("submit", (event) => {
  const form = event.target;
  if (event.defaultPrevented || form.getAttribute("method") !== "post") return;
  if (sent.has(form)) event.preventDefault();
  sent.add(form);
  showSending(true);
  setTimeout(() => {
    sent.delete(form);
    showSending(false);
  }, 15000);
});
addEventListener("pageshow", () => {
  sent = new WeakSet();
  showSending(false);
});

// A page that the browser has kept for the back button may be of somebody who has signed out since.
addEventListener("pageshow", async ({ persisted }) => {
  const answer = persisted && (await fetch(location.href, { redirect: "manual" }).catch(() => null));
  if (answer?.type === "opaqueredirect") location.reload();
});

// After going back the picker shows the page's own instance, not the one that was picked on it.
addEventListener("pageshow", () => document.querySelector(".picker")?.reset());

// On a narrow screen the navigation scrolls; the current link should be visible.
document.querySelector(".side [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });

// "Show all" appears only at texts that are cut off, which depends on the width of the screen.
const offerWholeTexts = () => {
  for (const more of document.querySelectorAll(".unclamp:not([open])")) {
    const text = more.parentElement.querySelector(".memory-text");
    more.hidden = text.scrollHeight <= text.clientHeight;
  }
};
addEventListener("resize", offerWholeTexts);

// Who has to put something right goes on there.
const focusWrong = (part) => {
  const field = part.querySelector(".field > .error")?.parentElement;
  field?.querySelector("input:not([type=hidden]), select, textarea")?.focus();
};
focusWrong(document);

const updateSelection = (form) => {
  const boxes = [...form.querySelectorAll("input[name=ids]")];
  const checked = boxes.filter((box) => box.checked);
  const everything = form.querySelector("input[name=all]");
  form.querySelector(".bulk").classList.toggle("selecting", checked.length > 0 || Boolean(everything));
  boxes.forEach((box) => box.closest("tr, [data-row]").classList.toggle("selected", box.checked));
  const page = form.querySelector("[data-select-page]");
  page.checked = boxes.length > 0 && checked.length === boxes.length;
  page.indeterminate = checked.length > 0 && !page.checked;
  if (!everything) {
    form.querySelector("[data-selected]").textContent = checked.length ? `${checked.length} selected` : "";
    form.querySelector("[data-select-all]")?.toggleAttribute("hidden", !page.checked);
  }
};

document.addEventListener("change", (event) => {
  const { target } = event;
  if (target.matches("[data-submit]")) target.form.requestSubmit();
  const form = target.closest("[data-selection]");
  if (!form) return;
  if (target.matches("[data-select-page]")) {
    form.querySelectorAll("input[name=ids]").forEach((box) => { box.checked = target.checked; });
  }
  // Choosing single rows again ends "all matching".
  if (target.matches("input[name=ids], [data-select-page]")) form.querySelector("input[name=all]")?.remove();
  updateSelection(form);
});

const onClick = (selector, act) => document.addEventListener("click", (event) => {
  const button = event.target.closest(selector);
  if (button) act(button, event);
});
onClick("[data-theme-toggle]", changeTheme);
onClick("[data-clear-search]", (button, event) => {
  event.preventDefault();
  const box = document.querySelector("[data-search]");
  box.value = "";
  box.focus();
  box.dispatchEvent(new Event("input", { bubbles: true }));
});
onClick("dialog [data-close]", (button, event) => {
  event.preventDefault();
  button.closest("dialog").close();
});
onClick("[data-copy]", (button) => {
  const field = document.getElementById(button.dataset.copy);
  const say = () => { button.textContent = "Copied"; };
  if (field.select) field.select();
  else getSelection().selectAllChildren(field);
  // Without HTTPS browsers have a clipboard only on the machine that the console runs on.
  if (navigator.clipboard) navigator.clipboard.writeText(field.value ?? field.textContent).then(say);
  else {
    field.focus();
    if (document.execCommand("copy")) say();
  }
});

// A click beside an open menu closes it.
document.addEventListener("click", ({ target }) => document.querySelectorAll("details.menu[open]").forEach((menu) => {
  if (!menu.contains(target)) menu.open = false;
}));

// The Enter that accepts a suggestion of an input method, for example for Japanese; Safari only shows it by the key code.
const isComposing = (event) => event.isComposing || event.keyCode === 229;

// Enter, a comma or a suggestion turns what was typed into a tag.
const addTag = (input) => {
  const tag = input.value.trim();
  const editor = input.closest("[data-tag-editor]");
  const known = [...editor.querySelectorAll("label.tag > input")].find((box) => box.value === tag);
  if (known) {
    known.checked = true;
  } else {
    const template = editor.querySelector("template");
    const label = template.content.firstElementChild.cloneNode(true);
    label.querySelector("input").value = tag;
    label.querySelector("span").textContent = tag;
    template.before(label);
  }
  input.value = "";
};
document.addEventListener("keydown", (event) => {
  if (!event.target.matches("[data-tag-input]") || isComposing(event) || !["Enter", ","].includes(event.key) || !event.target.value.trim()) return;
  event.preventDefault();
  addTag(event.target);
});
document.addEventListener("input", (event) => {
  const { target } = event;
  if (target.matches("[data-tag-input]") && target.value.trim() && (event.inputType ?? "insertReplacementText") === "insertReplacementText") addTag(target);
});

// In a form with a selection Enter presses no button, except the one that a field names in data-enter.
document.addEventListener("keydown", (event) => {
  const { key, target } = event;
  if (key !== "Enter" || isComposing(event) || !target.matches("[data-selection] input")) return;
  event.preventDefault();
  if (target.dataset.enter && target.value.trim()) document.getElementById(target.dataset.enter).click();
});

// "/" goes to the search box, unless the reader is typing.
const isTyping = (element) => element.matches("input:not([type=checkbox]), textarea, select") || element.isContentEditable;
document.addEventListener("keydown", (event) => {
  const box = document.querySelector("[data-search]");
  if (event.key === "/" && box && !event.ctrlKey && !event.metaKey && !event.altKey && !isTyping(event.target) && !document.querySelector("dialog[open]")) {
    event.preventDefault();
    box.focus();
    box.select();
  }
});

document.addEventListener("keydown", ({ key, target }) => {
  if (key === "Escape") document.querySelectorAll("details.menu[open]").forEach((menu) => {
    if (menu.contains(target)) menu.querySelector("summary").focus();
    menu.open = false;
  });
});

// Not sooner: until then htmx does not know the form in it, and Enter would leave the page.
document.addEventListener("htmx:afterSettle", (event) => {
  if (event.target.id !== "dialog") return;
  event.target.setAttribute("aria-label", event.target.querySelector("h2").textContent);
  if (!event.target.open) event.target.showModal();
  focusWrong(event.target);
});

document.addEventListener("htmx:load", (event) => {
  offerWholeTexts();
  const form = event.target.closest?.("[data-selection]") || event.target.querySelector?.("[data-selection]");
  if (form) updateSelection(form);
});

// A slider and the number beside it move each other; only the number is sent.
document.addEventListener("input", ({ target }) => {
  if (target.matches("[data-slides]")) document.getElementById(target.dataset.slides).value = target.value;
  const slider = document.querySelector(`[data-slides="${target.id}"]`);
  if (target.id && slider) slider.value = target.value;
  target.closest(".knob")?.classList.toggle("changed", target.value !== target.closest(".knob").querySelector("[data-saved]").dataset.saved);
});

// If a request fails the page stays, with a notice that it may be out of date. An open dialog covers the page, so then the notice is in it.
const failed = document.getElementById("failed");
for (const name of ["htmx:responseError", "htmx:sendError", "htmx:timeout"]) {
  document.addEventListener(name, (event) => {
    if (!failed || event.target.matches("[data-quiet]")) return;
    document.querySelector("dialog[open] .body")?.prepend(failed);
    failed.hidden = false;
  });
}
document.addEventListener("htmx:beforeRequest", (event) => {
  if (!failed || event.target.matches("[data-quiet]")) return;
  failed.hidden = true;
  document.getElementById("said").after(failed);
});

// A part that polls is not replaced while the reader presses something in it or chooses from one of its lists.
let pressed = null;
document.addEventListener("pointerdown", ({ target }) => { pressed = target; });
for (const name of ["pointerup", "pointercancel"]) document.addEventListener(name, () => setTimeout(() => { pressed = null; }));
document.addEventListener("htmx:beforeSwap", ({ detail }) => {
  const isHeld = detail.target.contains(pressed) || detail.target.contains(document.activeElement?.closest("select"));
  if (isHeld && detail.requestConfig.elt.matches("[hx-trigger^=every]")) detail.shouldSwap = false;
});

// After a swap the focus goes to the control that had it, or to the one before it if that is gone, or to the first. Controls are found again by
// their names; those with an id htmx focuses itself.
const namesIn = (part) => {
  const seen = {};
  const controls = part.querySelectorAll("a[href], button:not([aria-hidden]), input:not([type=hidden]), select, textarea, summary");
  return [...controls].map((control) => {
    const name = `${control.tagName} ${control.name} ${control.getAttribute("aria-label") || control.textContent.trim()}`;
    seen[name] = (seen[name] || 0) + 1;
    return [`${name} ${seen[name]}`, control];
  });
};
// A button that is disabled during its request loses the focus before the swap, so it is kept here.
let used = null;
document.addEventListener("htmx:beforeRequest", () => { used = document.activeElement.closest("button"); });
let left = null;
document.addEventListener("htmx:beforeSwap", ({ detail }) => {
  left = null;
  const focused = document.activeElement === document.body ? used : document.activeElement;
  if (!detail.shouldSwap || !detail.target.contains(focused)) return;
  const part = detail.target.parentElement;
  const named = namesIn(part);
  const at = named.findIndex(([, control]) => control === focused);
  left = { part, names: named.slice(0, at + 1).map(([name]) => name).reverse() };
});
document.addEventListener("htmx:afterSettle", () => {
  if (document.activeElement !== document.body) return;
  const now = new Map(left ? namesIn(left.part) : []);
  const control = used?.isConnected ? used : (now.get(left?.names.find((name) => now.has(name))) ?? now.values().next().value);
  control?.focus({ preventScroll: true });
  left = null;
});

// Links to categories, pages and without a filter were rendered before the latest typing. If one is clicked before that is searched, the text is added to it.
const addTyped = (asked) => {
  const typed = document.querySelector("[data-search]").value.trim();
  if (typed === (asked.get("search") ?? "").trim()) return;
  for (const name of ["page", "anchor"]) asked.delete(name);
  asked.set("search", typed);
  if (!typed) asked.delete("search");
};
const keepTyped = (detail) => {
  const url = new URL(detail.path, location.href);
  const asked = detail.elt.matches("form") ? detail.formData : url.searchParams;
  document.getElementById("filter-form").elements.category.value = asked.get("category") ?? "";
  addTyped(asked);
  detail.path = url.pathname + url.search;
};
document.addEventListener("click", ({ target }) => {
  const link = target.closest("a[data-keep-typed]");
  if (!link) return;
  const url = new URL(link.href);
  addTyped(url.searchParams);
  link.href = url;
});

// Filters that are not set are left out of the URL. X-Typing keeps each typed letter from becoming an entry of the history.
document.addEventListener("htmx:configRequest", ({ detail }) => {
  if (detail.elt.closest("[hx-sync^='#filter-form']")) keepTyped(detail);
  if (token()) detail.headers["X-CSRFToken"] = token();
  if (detail.triggeringEvent?.type === "input") detail.headers["X-Typing"] = "true";
  // Without a session X-Hint keeps the reader on the page: a hint is not worth losing what is being written there.
  if (detail.triggeringEvent && detail.elt.matches("[data-quiet]")) detail.headers["X-Hint"] = "true";
  if (detail.verb !== "get") return;
  for (const name of [...detail.formData.keys()]) {
    if (detail.formData.get(name) === "") detail.formData.delete(name);
  }
});

// The inbox: keys act on the row with the focus, and the focus moves on when that row is removed.
const inboxRows = () => [...document.querySelectorAll("[data-inbox] [data-row]")];
const focusRow = (row) => {
  row?.focus({ preventScroll: true });
  row?.scrollIntoView({ block: "nearest" });
};

document.addEventListener("keydown", (event) => {
  const inbox = document.querySelector("[data-inbox]");
  if (!inbox || event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target) || document.querySelector("dialog[open]")) return;
  const rows = inboxRows();
  const at = rows.findIndex((row) => row.contains(document.activeElement));
  const step = { j: 1, k: -1, ...(at >= 0 && { ArrowDown: 1, ArrowUp: -1 }) }[event.key];
  const help = inbox.querySelector("[data-help]");
  const control = at >= 0 && /^[a-z]$/.test(event.key) ? rows[at].querySelector(`[data-key=${event.key}]`) : null;
  if (event.key === "?" && help) help.open = !help.open;
  else if (step) focusRow(rows[Math.min(Math.max(at + step, 0), rows.length - 1)]);
  else if (control) control.click();
  else return;
  event.preventDefault();
});

document.addEventListener("htmx:beforeSwap", ({ detail }) => {
  if (!detail.shouldSwap || !detail.target.matches("[data-row]")) return;
  const rows = inboxRows();
  const at = rows.indexOf(detail.target);
  const next = rows[at + 1] || rows[at - 1];
  // After the swap, which htmx does right after this event.
  setTimeout(() => {
    document.querySelector("dialog[open]")?.close();
    if (next) {
      focusRow(next);
      updateSelection(next.closest("[data-selection]"));
    } else htmx.trigger("[data-inbox]", "emptied");
  });
});

document.addEventListener("htmx:afterSettle", (event) => {
  const inbox = event.target.closest?.("[data-inbox]");
  if (inbox && event.detail.elt?.matches?.("[data-inbox]")) (inboxRows()[0] || inbox.querySelector("h2"))?.focus();
});
