import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

interface Wish {
  readonly id: string;
  readonly wanted: "provisioned" | "released";
  readonly force: boolean;
}

/** A small allocator over HTTP that knows what it has done, as somebody would write one from the guide. */
export async function startAllocatorServer(token: string) {
  const wishes: Wish[] = [];
  const done: string[] = [];
  const known = new Set<string>();
  const refused: (string | undefined)[] = [];
  let next: { readonly status: number; readonly body: string } | undefined;
  let slow = 0;
  const answers = (wish: Wish): { readonly status: number; readonly body: object } => {
    const key = `${wish.id} ${wish.wanted}`;
    if (wish.wanted === "released" && !known.has(wish.id)) return { status: 404, body: { message: "unknown" } };
    if (done.includes(key)) return { status: 200, body: { state: "done" } };
    known.add(wish.id);
    if (slow > 0) {
      slow -= 1;
      return { status: 200, body: { state: "in_progress", message: "moving the tenant" } };
    }
    done.push(key);
    return { status: 200, body: { state: "done" } };
  };
  const server = createServer((request, response) => {
    let text = "";
    request.setEncoding("utf8");
    request.on("data", (chunk: string) => {
      text += chunk;
    });
    request.on("end", () => {
      const id = /^\/v1\/allocations\/([^/]+)$/.exec(request.url ?? "")?.[1];
      const send = (status: number, body: string) =>
        response.writeHead(status, { "content-type": "application/json" }).end(body);
      if (request.headers.authorization !== `Bearer ${token}`) {
        refused.push(request.headers.authorization);
        return send(401, JSON.stringify({ message: `who are you? ${request.headers.authorization}` }));
      }
      if (id === undefined || request.method !== "PUT") return send(404, "{}");
      if (next) {
        const { status, body } = next;
        next = undefined;
        return send(status, body);
      }
      const { wanted, force = false } = JSON.parse(text) as Wish;
      const wish = { id: decodeURIComponent(id), wanted, force };
      wishes.push(wish);
      const { status, body } = answers(wish);
      return send(status, JSON.stringify(body));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/v1/`,
    refused: refused as readonly (string | undefined)[],
    wishes: async () => wishes as readonly Wish[],
    timesDone: async (id: string, wanted: Wish["wanted"]) => done.filter((each) => each === `${id} ${wanted}`).length,
    isSlow: async (times: number) => {
      slow = times;
    },
    refusesNext: async () => {
      next = { status: 422, body: JSON.stringify({ message: "the tenant is not known" }) };
    },
    isBusyOnce: async () => {
      next = { status: 503, body: "" };
    },
    answersNext: (status: number, body: string) => {
      next = { status, body };
    },
    stop: () => new Promise<void>((resolve) => server.close(() => resolve())),
  };
}
export type AllocatorServer = Awaited<ReturnType<typeof startAllocatorServer>>;
