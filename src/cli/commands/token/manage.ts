import { create } from "@bufbuild/protobuf";
import { type Timestamp, TimestampSchema } from "@bufbuild/protobuf/wkt";
import { type Token, TokenSchema, TokenService } from "../../../../contract/millwright/v1/token_pb.js";
import { jsonOf } from "../../client/proto-json.ts";
import type { Session } from "../../client/session.ts";
import { type ConfirmOptions, confirm } from "../../terminal/confirm.ts";
import type { Column } from "../../terminal/output.ts";
import { printDone, printLine, printList } from "../../terminal/printing.ts";
import { clockTime, isoTime, parseDuration, toDate } from "../../terminal/times.ts";
import type { ListOptions } from "../options/list-options.ts";
import { readList } from "../options/read-list.ts";
import { parseScope, scopeText } from "./scope.ts";

export interface CreateTokenOptions {
  readonly role: readonly string[];
  readonly scope?: readonly string[];
  readonly expiresIn?: string;
}

export async function createToken(session: Session, name: string, options: CreateTokenOptions): Promise<undefined> {
  const client = await session.client(TokenService);
  const expiresAt =
    options.expiresIn === undefined
      ? undefined
      : session.terminal.now().getTime() + parseDuration(options.expiresIn, "--expires-in");
  const { id, token, validUntil } = await client.createToken(
    {
      name,
      roles: [...options.role],
      ...(options.scope && { scope: parseScope(options.scope) }),
      ...(expiresAt === undefined
        ? {}
        : { expiresAt: create(TimestampSchema, { seconds: BigInt(Math.floor(expiresAt / 1000)) }) }),
    },
    { signal: session.signal },
  );
  // The token alone goes to standard output, so that it can be sent straight into a file.
  if (session.style().format === "table") {
    const until = validUntil ? `, valid until ${clockTime(validUntil)}` : "";
    printLine(session.terminal.stderr, `Token ${id} for ${name}${until}; it is shown only this once:`);
    printLine(session.terminal.stdout, `${token}`);
    return;
  }
  await printDone(session, "", { id, name, token, ...(validUntil && { valid_until: isoTime(validUntil) }) });
}

function standing(token: Token, now: Date): string {
  if (token.revokedAt) return "revoked";
  const end = endOf(token);
  if (!end) return "valid";
  const left = toDate(end).getTime() - now.getTime();
  if (left <= 0) return "expired";
  // One that was made for a few days has not come unawares.
  return left <= ENDS_SOON && end !== token.expiresAt ? "ends soon" : "valid";
}

const ENDS_SOON = 14 * 86_400_000;

/** A server of before tokens had a greatest age tells of the end alone that they were given. */
function endOf({ validUntil, expiresAt }: Token): Timestamp | undefined {
  const isGiven = expiresAt && validUntil && toDate(expiresAt).getTime() === toDate(validUntil).getTime();
  return isGiven ? expiresAt : (validUntil ?? expiresAt);
}

const columns: readonly Column<Token>[] = [
  { title: "ID", cell: ({ id }) => id },
  { title: "NAME", cell: ({ name }) => name },
  { title: "ROLES", cell: ({ roles }) => roles.join(" ") },
  { title: "SCOPE", cell: ({ scope }) => scopeText(scope) },
  { title: "STATUS", cell: standing, plain: (token) => standing(token, new Date()) },
  {
    title: "CREATED",
    cell: (token) => clockTime(token.createdAt),
    short: { cell: (token) => clockTime(token.createdAt).split(" ", 1)[0] ?? "", least: "2026-01-31".length },
    plain: (token) => isoTime(token.createdAt),
  },
  {
    title: "EXPIRES",
    cell: (token) => clockTime(endOf(token)) || "never",
    plain: (token) => isoTime(endOf(token)),
  },
  {
    title: "LAST USED",
    cell: (token) => clockTime(token.lastUsedAt) || "never",
    plain: (token) => isoTime(token.lastUsedAt),
  },
];

export async function listTokens(session: Session, options: ListOptions): Promise<undefined> {
  const client = await session.client(TokenService);
  const items = await readList(
    session,
    options,
    (query) => client.listTokens(query, { signal: session.signal }),
    ({ tokens }) => tokens,
  );
  await printList(session, { items, columns, json: (token) => jsonOf(TokenSchema, token) }, "No tokens.");
}

export async function revokeToken(session: Session, id: string, { yes }: ConfirmOptions): Promise<undefined> {
  const what = `Revoke token ${id}? Calls with this token will be refused.`;
  if (!yes) await confirm(session, { what });
  const client = await session.client(TokenService);
  await client.revokeToken({ id }, { signal: session.signal });
  await printDone(session, `Token ${id} revoked.`, { id });
}
