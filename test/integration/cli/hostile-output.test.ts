import { readdirSync } from "node:fs";
import { join } from "node:path";
import {
  create,
  type DescField,
  type DescMessage,
  type DescMethod,
  type DescService,
  type Message,
} from "@bufbuild/protobuf";
import { type ReflectMessage, reflect } from "@bufbuild/protobuf/reflect";
import type { ConnectRouter } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { type CommandDescription, describeCommands } from "../../../src/cli/describe.ts";
import { createFakeTerminal, runAgainst } from "../../support/cli/fake-terminal.ts";
import { startHostileRest } from "../../support/cli/hostile-rest.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";

/**
 * Every text of every answer is hostile: a formula, colours and cursor moves that ours look like, others, a change of direction, a line break
 * that begins a forged line, and a break that only Unicode knows.
 */
const HOSTILE =
  "=evil\u001b[31m\u001b[2A\r\u001b[0J\u0007\u009b31m\u202e\u2066\u200b\u{e0041}\nforged: line\u2028forged, too\r";

const CONTRACT = join(import.meta.dirname, "..", "..", "..", "contract");
async function servicesOfContract(): Promise<DescService[]> {
  const files = readdirSync(CONTRACT, { recursive: true, encoding: "utf8" }).filter((file) => file.endsWith("_pb.js"));
  const modules = await Promise.all(
    files.map((file) => import(join(CONTRACT, file)) as Promise<Record<string, unknown>>),
  );
  return modules
    .flatMap((module) => Object.values(module))
    .filter((value): value is DescService => (value as { kind?: string } | null)?.kind === "service");
}

/** Lists end, and pages do not go on. */
const ENDS = /^(next_page_token|next_page|next_cursor|page_token|next_seal)$/;
const DEEPEST = 7;

function hostile(schema: DescMessage, depth = 0): Message {
  const message = create(schema);
  const fields = reflect(schema, message);
  if (schema.typeName === "google.protobuf.Timestamp") fields.set(fieldOf(schema, "seconds"), 1_700_000_000n);
  else if (schema.typeName === "google.protobuf.Duration") fields.set(fieldOf(schema, "seconds"), 61n);
  else for (const field of schema.fields) fill(fields, field, depth);
  return message;
}

function fieldOf(schema: DescMessage, name: string): DescField {
  const field = schema.fields.find((each) => each.name === name);
  if (!field) throw new Error(`${schema.typeName} has no ${name}`);
  return field;
}

function fill(message: ReflectMessage, field: DescField, depth: number): void {
  if (ENDS.test(field.name) || (field.oneof && field.oneof.fields[0] !== field)) return;
  const nested = (schema: DescMessage) => reflect(schema, hostile(schema, depth + 1));
  const isTooDeep = depth >= DEEPEST;
  if (field.fieldKind === "scalar") message.set(field, scalarOf(message.get(field), field.name));
  else if (field.fieldKind === "enum") message.set(field, field.enum.values[1]?.number ?? 0);
  else if (field.fieldKind === "message" && !isTooDeep) message.set(field, nested(field.message));
  else if (field.fieldKind === "list" && !(isTooDeep && field.listKind === "message")) {
    const list = message.get(field);
    if (field.listKind === "message") list.add(nested(field.message));
    else list.add(field.listKind === "enum" ? (field.enum.values[1]?.number ?? 0) : hostileScalar(field.scalar));
  } else if (field.fieldKind === "map" && !isTooDeep) {
    const map = message.get(field);
    if (field.mapKind === "message") map.set(HOSTILE, nested(field.message));
    else map.set(HOSTILE, field.mapKind === "enum" ? 1 : hostileScalar(field.scalar));
  }
}

const TYPE_STRING = 9;
const hostileScalar = (type: number): unknown => (type === TYPE_STRING ? HOSTILE : 1);

function scalarOf(empty: unknown, name: string): unknown {
  if (typeof empty === "string") return HOSTILE;
  if (typeof empty === "bigint") return 1n;
  if (typeof empty === "number") return 1;
  if (typeof empty === "boolean") return name === "end";
  return new TextEncoder().encode(HOSTILE);
}

/** A server all of whose answers are hostile; a stream ends with its first message, and the second of the same ends the command. */
function hostileServer(services: readonly DescService[], onStream: () => void) {
  return (router: ConnectRouter) => {
    for (const service of services) {
      const methods = service.methods.map((method: DescMethod) => [
        method.localName,
        method.methodKind === "unary"
          ? () => hostile(method.output)
          : async function* () {
              onStream();
              yield hostile(method.output);
            },
      ]);
      router.service(service, Object.fromEntries(methods) as never);
    }
  };
}

/** Those that call no server, or do not end by themselves. */
const NOT_THESE = /^(agent|completion|netboot|dev|serve|sim|config|help)\b/;

function* leaves(command: CommandDescription, path: readonly string[] = []): Generator<string[]> {
  if (command.commands.length > 0) for (const each of command.commands) yield* leaves(each, [...path, each.name]);
  else {
    const given = command.arguments
      .filter(({ usage }) => usage.startsWith("<"))
      .map(({ choices }) => choices[0] ?? HOSTILE);
    const options = command.options
      .filter(({ required }) => required)
      .flatMap(({ names, choices }) => [names.at(-1) ?? "", choices[0] ?? HOSTILE]);
    yield [...path, ...given, ...options];
  }
}

const services = await servicesOfContract();
const commands = [...leaves(describeCommands())].filter((line) => !NOT_THESE.test(line.join(" ")));

let rest: Awaited<ReturnType<typeof startHostileRest>>;
beforeAll(async () => {
  rest = await startHostileRest(HOSTILE);
});
afterAll(() => rest.close());

async function run(line: readonly string[], isTTY: boolean) {
  const terminal = createFakeTerminal({
    isTTY,
    ...(isTTY && { columns: 100, rows: 2_000 }),
    stdin: HOSTILE,
    answer: "y",
  });
  let streams = 0;
  const onStream = () => {
    streams += 1;
    if (streams > 1) terminal.interrupt();
  };
  const timer = setTimeout(() => terminal.interrupt(), 1_500);
  await runAgainst(hostileServer(services, onStream), [...line, "--server", rest.url], { terminal });
  clearTimeout(timer);
  return { out: terminal.out(), err: terminal.err() };
}

const STEERING = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u;
const shown = (line: readonly string[]) => line.join(" ").replaceAll(HOSTILE, "X");
const asJson = JSON.stringify(HOSTILE).slice(1, -1);
const firstLine = (text: string, at: RegExp) => text.split("\n").find((each) => at.test(each));

/** What is wrong with an output, or nothing. */
const FAULTS: Readonly<Record<string, (out: string, err: string, line: string) => string | undefined>> = {
  table: (out, err, line) => (isDocument(line) ? undefined : firstLine(out + err, /^forged/)),
  csv: (out) => firstLine(out.replaceAll(/"[^"]*"/g, ""), /^forged/) ?? firstLine(out, /(^|,)"?=evil/),
  // Each line of a stream is a document of its own.
  json: (out, _, line) => (isStream(line) || JSON.stringify(JSON.parse(out)).includes(asJson) ? undefined : out),
  yaml: (out, _, line) => (isStream(line) || JSON.stringify(parse(out)).includes(asJson) ? undefined : out),
};
/** Of these the lines are what is to be shown. */
const isDocument = (line: string) => /^(run logs|cloud-init show|script show)/.test(line);
const isStream = (line: string) => /watch|export|logs/.test(line);

test.each(Object.keys(FAULTS))(
  "no command prints as %s what steers a terminal or a spreadsheet",
  async (format) => {
    const [printed, faults] = [[] as string[], [] as string[]];
    for (const command of commands) {
      const { out, err } = await run([...command, "-o", format], false);
      const line = shown(command);
      if (STEERING.test((out + err).replace(/[\n\t]/g, ""))) faults.push(`${line}: steers`);
      if (!out.includes("evil")) continue;
      printed.push(line);
      const fault = FAULTS[format]?.(out, isOwnInput(err) ? "" : err, line);
      if (fault !== undefined) faults.push(`${line}: ${fault}`);
    }
    expect(faults).toEqual([]);
    expect(printed.length).toBeGreaterThan(115);
  },
  120_000,
);

/** What is wrong with the words that somebody typed is said in their words. */
const isOwnInput = (err: string) => err.startsWith("error: ");

test("each printer makes its texts printable by itself: not even a colour of ours gets through", async () => {
  const faults: string[] = [];
  for (const line of commands) {
    const { out, err } = await run(line, true);
    if ((out + err).includes("evil\u001b")) faults.push(`${shown(line)}: ${firstLine(out + err, /evil\p{Cc}/u)}`);
  }
  expect(faults).toEqual([]);
}, 120_000);
