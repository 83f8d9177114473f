import { isConnectError } from "./errors.ts";

/**
 * For what is asked before a command, in order to confirm it. Undefined where the server refuses, or is an older one that cannot tell:
 * the command then answers for itself, and one device that is refused keeps no other from it. A server that does not answer is an
 * error: it might carry out what nobody was asked about.
 */
export async function unlessRefused<T>(ask: () => Promise<T>): Promise<T | undefined> {
  try {
    return await ask();
  } catch (error) {
    const { Code } = await import("@connectrpc/connect");
    const refusals = [Code.Unimplemented, Code.NotFound, Code.FailedPrecondition, Code.InvalidArgument];
    if (isConnectError(error) && refusals.includes(error.code)) return undefined;
    throw error;
  }
}
