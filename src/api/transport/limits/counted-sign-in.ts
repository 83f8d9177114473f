import type { SignedIn } from "../../auth/authenticate.ts";
import { refusedCallerOf } from "../../auth/refused-caller.ts";
import type { CallQuotas } from "./call-quotas.ts";

/** Signs a caller in, and counts the request: for who is signed in, also where the call is refused, or for where it comes from. */
export async function signInCounted(
  signIn: () => Promise<SignedIn>,
  address: string | null,
  quotas: CallQuotas | undefined,
): Promise<SignedIn> {
  const caller = await signIn().catch((error: unknown) => {
    quotas?.request({ name: refusedCallerOf(error), address });
    throw error;
  });
  quotas?.request(caller);
  return caller;
}
