import { evaluate } from "./arithmetic.ts";
import { findCommand, needsRoot } from "./commands.ts";
import { expandToFields, expandToText } from "./expansion.ts";
import { filesLike } from "./machine-files.ts";
import { parseScript } from "./parser.ts";
import { type Process, processesOf } from "./processes.ts";
import { redirect } from "./redirection.ts";
import { type CommandIo, inputOf, type ShellSession } from "./shell-session.ts";
import {
  type AndOr,
  type Command,
  type Pipeline,
  type Script,
  SyntaxProblem,
  type Word,
  type WordPart,
} from "./syntax.ts";

/** Enough for any script that waits for something, and an end for one that never stops. */
const MOST_COMMANDS = 20_000;
const NOT_FOUND = 127;
const SYNTAX = 2;
const FOREGROUND_PID = 4_242;
const WRAPPERS = new Set(["sudo", "env", "nohup", "setsid", "exec", "command"]);

/** `exit`, and the end of a script under `set -e`. */
class ExitScript extends Error {
  readonly code: number;
  constructor(code: number) {
    super(`exit ${code}`);
    this.code = code;
  }
}

interface Budget {
  commands: number;
}

/** Runs one script on a machine. `session.signal` ends whatever waits; then the promise is rejected. */
export async function runScript(
  script: string,
  session: ShellSession,
  run: { io: CommandIo; env: Readonly<Record<string, string>>; args?: readonly string[]; budget?: Budget },
): Promise<number> {
  const { io, env, args = [], budget = { commands: MOST_COMMANDS } } = run;
  try {
    return await new Interpreter(session, { ...env }, args, budget).script(parseScript(script), io);
  } catch (error) {
    if (error instanceof ExitScript) return error.code;
    if (!(error instanceof SyntaxProblem)) throw error;
    io.error(`sh: syntax error: ${error.message}\n`);
    return SYNTAX;
  }
}

class Interpreter {
  readonly #session: ShellSession;
  readonly #variables: Record<string, string>;
  readonly #args: readonly string[];
  readonly #budget: Budget;
  #status = 0;
  #stopsOnFailure = false;
  /** More than 0 within a condition, where a failure is an answer. */
  #conditions = 0;
  /** What this shell put into the background. */
  readonly #children: Process[] = [];

  constructor(session: ShellSession, variables: Record<string, string>, args: readonly string[], budget: Budget) {
    this.#session = session;
    this.#variables = variables;
    this.#args = args;
    this.#budget = budget;
  }

  async script(script: Script, io: CommandIo): Promise<number> {
    for (const { chain, background } of script) {
      if (background) this.#inBackground(chain, io);
      else await this.#chain(chain, io);
    }
    return this.#status;
  }

  /** Nothing that the connection brings or ends reaches it any more. */
  #inBackground(chain: AndOr, io: CommandIo): void {
    const { machine } = this.#session;
    const process = processesOf(machine).start({ ...this.#variables }, (self) => {
      const session = { ...this.#session, signal: self.signal, pid: self.pid };
      const inner = new Interpreter(session, { ...this.#variables }, this.#args, { commands: MOST_COMMANDS });
      inner.#stopsOnFailure = this.#stopsOnFailure;
      return inner.script([{ chain, background: false }], { ...io, stdin: inputOf("") });
    });
    this.#children.push(process);
    this.#status = 0;
  }

  async #chain(chain: AndOr, io: CommandIo): Promise<void> {
    for (const [index, { after, pipeline }] of chain.entries()) {
      if (after !== "always" && (after === "success") !== (this.#status === 0)) continue;
      const last = index === chain.length - 1;
      this.#status = last
        ? await this.#pipeline(pipeline, io)
        : await this.#condition(() => this.#pipeline(pipeline, io));
      if (this.#status !== 0 && last && !pipeline.negated && this.#stopsOnFailure && this.#conditions === 0)
        throw new ExitScript(this.#status);
    }
  }

  async #condition(run: () => Promise<number>): Promise<number> {
    this.#conditions += 1;
    try {
      return await run();
    } finally {
      this.#conditions -= 1;
    }
  }

  async #pipeline({ negated, commands }: Pipeline, io: CommandIo): Promise<number> {
    let stdin = io.stdin;
    let code = 0;
    for (const [index, command] of commands.entries()) {
      let piped = "";
      const last = index === commands.length - 1;
      const out = last
        ? io.out
        : (text: string) => {
            piped += text;
          };
      code = await this.#command(command, { stdin, out, error: io.error });
      stdin = inputOf(piped);
    }
    return negated ? (code === 0 ? 1 : 0) : code;
  }

  async #command(command: Command, io: CommandIo): Promise<number> {
    this.#budget.commands -= 1;
    if (this.#budget.commands < 0) throw new ExitScript(1);
    // Lets everything else have its turn, also in a script that loops without ever waiting.
    if (this.#budget.commands % 100 === 0) await new Promise(setImmediate);
    const { signal, pid, machine } = this.#session;
    signal.throwIfAborted();
    if (pid !== undefined && processesOf(machine).find(pid) === undefined)
      throw new Error("the machine went down under it");
    switch (command.kind) {
      case "simple":
        return this.#simple(command, io);
      case "group":
        return command.subshell ? this.#subshell(command.body, io) : this.script(command.body, io);
      case "if":
        for (const { when, then } of command.branches)
          if ((await this.#condition(() => this.script(when, io))) === 0) return this.#body(then, io);
        return this.#body(command.otherwise, io);
      case "loop": {
        let code = 0;
        while (((await this.#condition(() => this.script(command.when, io))) === 0) !== command.until)
          code = await this.#body(command.body, io);
        return code;
      }
      case "for": {
        let code = 0;
        for (const item of (await Promise.all(command.items.map((word) => this.#fields(word, io)))).flat()) {
          this.#variables[command.name] = item;
          code = await this.#body(command.body, io);
        }
        return code;
      }
    }
  }

  /** What is set within, and an exit, stay within. */
  async #subshell(body: Script, io: CommandIo): Promise<number> {
    const inner = new Interpreter(this.#session, { ...this.#variables }, this.#args, this.#budget);
    inner.#stopsOnFailure = this.#stopsOnFailure;
    try {
      return await inner.script(body, io);
    } catch (error) {
      if (error instanceof ExitScript) return error.code;
      throw error;
    }
  }

  async #body(script: Script, io: CommandIo): Promise<number> {
    this.#status = 0;
    return this.script(script, io);
  }

  async #simple(command: Extract<Command, { kind: "simple" }>, outer: CommandIo): Promise<number> {
    const { io, finish } = await redirect(command.redirects, {
      outer,
      machine: this.#session.machine,
      signal: this.#session.signal,
      text: (word) => this.#text(word, outer),
    });
    const assigned: Record<string, string> = {};
    for (const [name, value] of command.assignments) assigned[name] = await this.#text(value, io);
    const words: string[] = [];
    for (const word of command.words) words.push(...(await this.#fields(word, io)));
    const [name, ...args] = words;
    try {
      if (name !== undefined) return await this.#run(name, args, io, assigned);
      Object.assign(this.#variables, assigned);
      // An assignment alone succeeds, unless a command within it says otherwise.
      return command.assignments.some(([, value]) => value.some(({ kind }) => kind === "output")) ? this.#status : 0;
    } finally {
      finish();
    }
  }

  async #run(name: string, args: string[], io: CommandIo, assigned: Record<string, string>): Promise<number> {
    switch (name) {
      case "exit":
        throw new ExitScript(args[0] === undefined ? this.#status : Number.parseInt(args[0], 10) & 255);
      case "set":
        if (args.some((arg) => /^-[a-z]*e/.test(arg))) this.#stopsOnFailure = true;
        if (args.some((arg) => /^\+[a-z]*e/.test(arg))) this.#stopsOnFailure = false;
        return 0;
      case "export":
      case "readonly":
        for (const arg of args) {
          const [variable = "", ...value] = arg.split("=");
          if (value.length > 0) this.#variables[variable] = value.join("=");
        }
        return 0;
      case "unset":
        for (const variable of args) delete this.#variables[variable];
        return 0;
      case "trap":
      case "umask":
        return 0;
      case "wait":
        await Promise.race([Promise.all(this.#children.map(({ ended }) => ended)), aborted(this.#session.signal)]);
        this.#session.signal.throwIfAborted();
        return 0;
    }
    return this.#external(name, args, io, { ...this.#variables, ...assigned });
  }

  async #external(name: string, args: string[], io: CommandIo, env: Record<string, string>): Promise<number> {
    const [first, ...rest] = args;
    if (name === "command" && (first === "-v" || first === "-V")) name = "which";
    if (name === "sudo" && this.#session.user !== "root") {
      const asRoot = { ...this.#session, user: "root" };
      return new Interpreter(asRoot, { ...env }, this.#args, this.#budget).#external(name, args, io, env);
    }
    if (WRAPPERS.has(name)) {
      const at = args.findIndex((arg) => !arg.startsWith("-") && !/^[A-Za-z_]\w*=/.test(arg));
      const more = args
        .slice(0, at === -1 ? args.length : at)
        .filter((arg) => arg.includes("=") && !arg.startsWith("-"));
      const wider = {
        ...env,
        ...Object.fromEntries(more.map((arg) => arg.split(/=(.*)/s).slice(0, 2) as [string, string])),
      };
      return at === -1 ? 0 : this.#external(args[at] ?? "", args.slice(at + 1), io, wider);
    }
    switch (name) {
      case "sh":
      case "bash":
      case "/bin/sh":
      case "/bin/bash": {
        const inline = first !== undefined && /^-[a-z]*c$/.test(first);
        const script = inline ? (rest[0] ?? "") : await io.stdin();
        const positional = inline ? rest.slice(2) : args.filter((arg) => !/^-[a-z-]*$/.test(arg));
        const inner = { ...io, stdin: inline ? io.stdin : inputOf("") };
        const shell = { io: inner, env, args: positional, budget: this.#budget };
        return runScript(script, this.#session, shell);
      }
    }
    const command = findCommand(name.replace(/^\/(usr\/)?s?bin\//, ""));
    if (command === undefined) {
      io.error(`sh: 1: ${name}: not found\n`);
      return NOT_FOUND;
    }
    if (this.#session.user !== "root" && needsRoot(name, args)) {
      io.error(`${name}: must be run as root\n`);
      return 1;
    }
    return command({ args, io, env, session: this.#session });
  }

  async #fields(word: Word, io: CommandIo): Promise<string[]> {
    const fields = await expandToFields(word, (part) => this.#part(part, io));
    // Only what is written out as a path with `*` is taken as a pattern: whatever came out of a variable stays what it is.
    const [only] = word;
    if (word.length !== 1 || only?.kind !== "text" || only.quoted || !/^\/.*\*/.test(only.text)) return fields;
    const found = filesLike(this.#session.machine, only.text);
    return found.length === 0 ? fields : found;
  }

  #text(word: Word, io: CommandIo): Promise<string> {
    return expandToText(word, (part) => this.#part(part, io));
  }

  async #part(part: WordPart, io: CommandIo): Promise<string> {
    if (part.kind === "text") return part.text;
    if (part.kind === "variable") return this.#variable(part, io);
    if (part.kind === "arithmetic") return String(evaluate(part.expression, (name) => this.#valueOf(name)));
    let output = "";
    const out = (text: string) => {
      output += text;
    };
    const shell = { io: { ...io, out }, env: this.#variables, args: this.#args, budget: this.#budget };
    this.#status = await runScript(part.script, this.#session, shell);
    return output.replace(/\n+$/, "");
  }

  async #variable(part: Extract<WordPart, { kind: "variable" }>, io: CommandIo): Promise<string> {
    const { name, otherwise } = part;
    const value = this.#valueOf(name);
    if (value !== undefined && value !== "") return value;
    if (otherwise === null) return "";
    const text = await this.#text(otherwise.text, io);
    if (otherwise.how === "use") return text;
    io.error(`sh: ${name}: ${text === "" ? "parameter not set" : text}\n`);
    throw new ExitScript(SYNTAX);
  }

  #valueOf(name: string): string | undefined {
    if (name === "?") return String(this.#status);
    if (name === "#") return String(this.#args.length);
    if (name === "@" || name === "*") return this.#args.join(" ");
    if (name === "0") return "sh";
    if (name === "$") return String(this.#session.pid ?? FOREGROUND_PID);
    if (name === "!") return this.#children.at(-1)?.pid.toString();
    return /^\d$/.test(name)
      ? this.#args[Number(name) - 1]
      : Object.hasOwn(this.#variables, name)
        ? this.#variables[name]
        : undefined;
  }
}

async function aborted(signal: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  if (signal.aborted) return;
  signal.addEventListener("abort", () => resolve(), { once: true });
  await promise;
}
