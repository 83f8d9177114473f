import { refusedCallerOf } from "../../auth/refused-caller.ts";
import type { CallQuotas } from "./call-quotas.ts";

/** Signs a caller in, and counts the request: for who is signed in, also where the call is refused, or for where it comes from. */
export async function signInCounted<T extends { readonly name: string | null }>(
  signIn: () => Promise<T>,
  address: string | null,
  quotas: CallQuotas | undefined,
): Promise<T> {
  const caller = await signIn().catch((error: unknown) => {
    quotas?.request({ name: refusedCallerOf(error), address });
    throw error;
  });
  quotas?.request({ name: caller.name, address });
  return caller;
}
