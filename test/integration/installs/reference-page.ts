import { Script } from "node:vm";

/** As much of a browser as the reference page uses. */
class FakeElement {
  readonly dataset: Record<string, string> = {};
  readonly listeners = new Map<string, (event: { target: { value: string } }) => void>();
  children: FakeElement[] = [];
  id = "";
  className = "";
  hidden = false;
  open = false;
  readonly tagName: string;
  #text = "";

  constructor(tag: string) {
    this.tagName = tag.toUpperCase();
  }
  get textContent(): string {
    return this.#text + this.children.map(({ textContent }) => ` ${textContent}`).join("");
  }
  set textContent(text: string) {
    this.#text = text;
    this.children = [];
  }
  append(...inner: FakeElement[]): void {
    this.children.push(...inner);
  }
  replaceChildren(...inner: FakeElement[]): void {
    this.children = inner;
  }
  addEventListener(type: string, listener: (event: { target: { value: string } }) => void): void {
    this.listeners.set(type, listener);
  }
  scrollIntoView(): void {}
  querySelectorAll(tag: string): FakeElement[] {
    return this.children.flatMap((child) => [
      ...(child.tagName === tag.toUpperCase() ? [child] : []),
      ...child.querySelectorAll(tag),
    ]);
  }
}

export interface ReferencePage {
  operations(): readonly { readonly id: string; readonly hidden: boolean }[];
  textOf(operationId: string): string;
  search(text: string): void;
}

/** Runs the page's script on the document, and lets a test look at what it shows. */
export async function openReferencePage(html: string, api: unknown): Promise<ReferencePage> {
  const [, script = ""] = /<script>([\s\S]*?)<\/script>/.exec(html) ?? [];
  const byId = new Map(["content", "status", "search", "theme"].map((id) => [id, new FakeElement("div")]));
  const body = byId.get("content") ?? new FakeElement("main");
  const asked: string[] = [];
  const shown = Promise.withResolvers<void>();
  const status = byId.get("status");
  new Script(script).runInNewContext({
    Node: FakeElement,
    document: {
      createElement: (tag: string) => new FakeElement(tag),
      getElementById: (id: string) => byId.get(id),
      querySelectorAll: (tag: string) => body.querySelectorAll(tag),
      documentElement: new FakeElement("html"),
    },
    location: { origin: "http://millwright", hash: "" },
    matchMedia: () => ({ matches: false }),
    fetch: async (path: string) => {
      asked.push(path);
      setImmediate(shown.resolve);
      return { ok: true, status: 200, json: async () => api };
    },
  });
  await shown.promise;
  if (status?.textContent) throw new Error(status.textContent);
  if (asked.join() !== "/api/v1/openapi.json") throw new Error(`the page asked for ${asked.join(", ")}`);
  const boxes = () => body.querySelectorAll("details");
  return {
    operations: () => boxes().map(({ id, hidden }) => ({ id, hidden })),
    textOf: (operationId) => boxes().find(({ id }) => id === operationId)?.textContent ?? "",
    search: (value) => byId.get("search")?.listeners.get("input")?.({ target: { value } }),
  };
}
