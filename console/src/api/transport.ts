import { Code, ConnectError, type Interceptor, type Transport } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-web";
import { noteServerTime } from "./server-clock.ts";

type Listener = () => void;
const listeners = new Set<Listener>();

/** Told when the server no longer knows the session: somebody has to sign in again. */
export function onSignedOut(listener: Listener): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

const noteSignedOut: Interceptor = (next) => async (request) => {
  try {
    const answer = await next(request);
    noteServerTime(answer.header.get("date"));
    return answer;
  } catch (error) {
    if (ConnectError.from(error).code === Code.Unauthenticated) for (const listener of listeners) listener();
    throw error;
  }
};

/** Calls go to the server that the page came from; the browser adds the cookie of the session. */
export const transport: Transport = createConnectTransport({
  baseUrl: window.location.origin,
  useBinaryFormat: true,
  interceptors: [noteSignedOut],
});
