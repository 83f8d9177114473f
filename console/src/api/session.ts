import { AccessService } from "../../../contract/millwright/v1/access_pb.js";
import { clientOf } from "./services.ts";

/** Who is signed in, and what the server would let them do. */
export interface Me {
  /** Empty for a caller without a name. */
  readonly name: string;
  readonly roles: readonly string[];
  /** Methods (`package.Service/Method`) and routes that the caller may call. */
  readonly may: ReadonlySet<string>;
}

async function readMe(): Promise<Me> {
  const { name, roles, methods, routes, fields } = await clientOf(AccessService).getMyAccess({});
  return { name, roles, may: new Set([...methods, ...routes, ...fields]) };
}

/** Who reads changes with the session alone. */
export const ME_QUERY = { queryKey: ["me", "all"], queryFn: readMe, staleTime: 300_000 } as const;

/** A token, a JSON Web Token, or the code of a link. The answer is a cookie that no script can read. */
export async function signIn(credential: { readonly token: string } | { readonly code: string }): Promise<void> {
  const answer = await fetch("/auth/session", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(credential),
  });
  if (!answer.ok) throw new Error(await messageOf(answer));
}

/** Whether people sign in at an issuer, and at which. */
export async function readSignInMethods(): Promise<{ readonly issuer: string | null }> {
  const answer = await fetch("/auth/methods");
  if (!answer.ok) throw new Error(await messageOf(answer));
  return (await answer.json()) as { readonly issuer: string | null };
}

export async function signOut(): Promise<void> {
  const answer = await fetch("/auth/session", { method: "DELETE" });
  if (!answer.ok) throw new Error(await messageOf(answer));
}

async function messageOf(answer: Response): Promise<string> {
  const body: unknown = await answer.json().catch(() => undefined);
  const error = (body as { error?: { message?: unknown } } | undefined)?.error;
  return typeof error?.message === "string" ? error.message : `the server answered ${answer.status}`;
}
