import type { DescService } from "@bufbuild/protobuf";
import type { Client } from "@connectrpc/connect";
import type { Style } from "../terminal/output.ts";
import type { RestCall } from "./rest.ts";

/** A stream that text goes to. */
export interface Sink {
  write(text: string): void;
  readonly isTTY: boolean;
  /** Width and height in characters, for terminals. */
  readonly columns?: number | undefined;
  readonly rows?: number | undefined;
}

/** All that a command sees of the outside but the server; tests bring their own. */
export interface Terminal {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly stdout: Sink;
  readonly stderr: Sink;
  readonly stdin: {
    readonly isTTY: boolean;
    readAll(): Promise<string>;
    /** Asks on the terminal; what is typed is not shown when `hidden`. */
    ask(question: string, options: { readonly hidden: boolean }): Promise<string>;
  };
  now(): Date;
  /** Aborted when the user interrupts. */
  readonly interrupted: AbortSignal;
}

/** Options that every command takes, before or after its name. */
export interface GlobalOptions {
  readonly output: "table" | "json" | "yaml" | "csv";
  /** False when --no-color was given. */
  readonly color: boolean;
  readonly server?: string;
  readonly token?: string;
  readonly tokenFile?: string;
  readonly dataDir?: string;
  readonly caFile?: string;
  readonly clientCert?: string;
  readonly clientKey?: string;
}

/** One run of one command: where it prints, and the server that it asks. */
export interface Session {
  readonly terminal: Terminal;
  readonly globals: GlobalOptions;
  readonly signal: AbortSignal;
  /** How to print now; the width of the terminal and the time change. */
  style(): Style;
  /** A client of one service; `streaming` ones may stay silent for as long as they like. */
  client<S extends DescService>(service: S, options?: { readonly streaming: boolean }): Promise<Client<S>>;
  /** One call of the REST API. */
  rest(call: RestCall): Promise<unknown>;
}

/** What a command does; a number is its exit code, and nothing means 0. */
export type CommandBody = (session: Session) => Promise<number | undefined>;
export type Run = (body: CommandBody) => Promise<void>;
