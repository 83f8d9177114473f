import { createHash } from "node:crypto";
import type { InstallsUnderTest, Node, One } from "./installs-under-test.ts";

/** How a boot ended. */
export type BootOutcome =
  /** The script ended: on to the disk, with what was on the screen. */
  | { readonly type: "disk"; readonly screen: string }
  /** It asks again after a while. */
  | { readonly type: "waits"; readonly next: string; readonly screen: string }
  | {
      readonly type: "kernel";
      readonly kernel: Buffer;
      readonly initrd: Buffer;
      readonly words: Readonly<Record<string, string>>;
      readonly screen: string;
    };

/** Pieces, as firmware asks for them: so small that every file takes several. */
const PIECE = 64 * 1024;

/** A machine that does what firmware, iPXE and our environment do, request by request, without being one. */
export class ScriptedMachine {
  readonly mac: string;
  readonly #api: Pick<InstallsUnderTest, "call">;
  #words: Readonly<Record<string, string>> = {};
  #boots = 0;

  constructor(api: Pick<InstallsUnderTest, "call">, mac: string) {
    this.#api = api;
    this.mac = mac;
  }

  /** Asks for its script. */
  async fetchScript(more = ""): Promise<string> {
    const answer = await this.#api.call("GET", `/api/v1/boot?mac=${this.mac}${more}`, undefined, { as: null });
    if (answer.status !== 200) throw new Error(`no script: ${answer.status} ${answer.text}`);
    return answer.text;
  }

  /** Switches on: fetches its script and follows it line by line. */
  async boot(more = ""): Promise<BootOutcome> {
    const [first, ...lines] = (await this.fetchScript(more)).trimEnd().split("\n");
    if (first !== "#!ipxe") throw new Error(`that is no script: ${first}`);
    this.#boots += 1;
    const outcome = await this.#follow(lines);
    if (outcome.type === "kernel") this.#words = outcome.words;
    return outcome;
  }

  async #follow(lines: readonly string[]): Promise<BootOutcome> {
    const screen: string[] = [];
    let kernel: { readonly data: Buffer; readonly words: Readonly<Record<string, string>> } | undefined;
    let initrd: Buffer = Buffer.alloc(0);
    for (let at = 0; at < lines.length; at += 1) {
      const [command = "", orElse] = (lines[at] ?? "").split(" || ");
      const [verb = "", ...args] = command.split(" ");
      const shown = () => screen.join("\n");
      if (verb.startsWith(":") || verb === "sleep") continue;
      if (verb === "echo") screen.push(args.join(" "));
      else if (verb === "exit") return { type: "disk", screen: shown() };
      else if (verb === "chain") return { type: "waits", next: args.at(-1) ?? "", screen: shown() };
      else if (verb === "boot" && kernel)
        return { type: "kernel", kernel: kernel.data, initrd, words: kernel.words, screen: shown() };
      else if (verb === "kernel" || verb === "initrd") {
        const data = await this.#tryDownload((verb === "kernel" ? args[0] : args.at(-1)) ?? "");
        if (data === undefined) at = lines.indexOf(`:${orElse?.split(" ")[1]}`);
        else if (verb === "initrd") initrd = data;
        else kernel = { data, words: wordsOf(args.slice(1)) };
      } else throw new Error(`iPXE has no such command, or not here: ${lines[at]}`);
    }
    throw new Error("the script ends in a dead prompt");
  }

  async #tryDownload(url: string): Promise<Buffer | undefined> {
    try {
      return await this.download(url);
    } catch {
      return undefined;
    }
  }

  /** In pieces, each with the assurance that the file is still the same. */
  async download(url: string): Promise<Buffer> {
    const parts: Buffer[] = [];
    for (let from = 0, total = 1, etag = ""; from < total; from += PIECE) {
      const range = `bytes=${from}-${from + PIECE - 1}`;
      const answer = await fetch(url, { headers: { range, ...(etag !== "" && { "if-range": etag }) } });
      if (answer.status !== 206) throw new Error(`${url}: ${answer.status}`);
      parts.push(Buffer.from(await answer.arrayBuffer()));
      total = Number(answer.headers.get("content-range")?.split("/")[1]);
      etag = answer.headers.get("etag") ?? "";
    }
    return Buffer.concat(parts);
  }

  /** With the token of its last boot, unless another is given. */
  async report(members: Readonly<Record<string, unknown>>, name?: string) {
    const body = {
      mac_address: this.mac,
      report_token: this.#words.token,
      report_id: `boot-${this.#boots}-${name ?? JSON.stringify(members)}`.slice(0, 128),
      ...members,
    };
    return this.#api.call<One<Node>>("POST", "/api/v1/report", body, { as: null });
  }

  /** What the environment does with an image. */
  async install(): Promise<string> {
    const { image = "", digest = "" } = this.#words;
    await this.report({ installation_status: "started" });
    const data = await this.download(image);
    await this.report({ installation_status: "progress", installation_progress: 50 });
    const found = `sha256:${createHash("sha256").update(data).digest("hex")}`;
    if (found !== digest) {
      const installation_error = `the image has the digest ${found}, not ${digest}`;
      return (await this.report({ installation_status: "failed", installation_error })).body.message ?? "";
    }
    return (await this.report({ installation_status: "complete" })).body.message ?? "";
  }

  async eraseDisk(disk: string, verified = true) {
    const erased_disk = { disk, serial: `serial of ${disk}`, method: "overwrite", verified };
    return this.report({ event: "disk_erased", erased_disk });
  }

  async erased(...disks: readonly string[]) {
    return this.report({ event: "erased", erased_disks: disks });
  }
}

/** `millwright.server=…` as `server`; other words under their own names. */
const wordsOf = (args: readonly string[]): Readonly<Record<string, string>> =>
  Object.fromEntries(
    args.map((arg) => {
      const [name = "", ...value] = arg.split("=");
      return [name.replace(/^millwright\./, ""), value.join("=")];
    }),
  );
