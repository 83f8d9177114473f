import type { Socket } from "node:net";
import { type DetailedPeerCertificate, TLSSocket } from "node:tls";
import { createContextKey } from "@connectrpc/connect";

/** The other end of the connection that a call came in on. */
export interface Peer {
  readonly address: string | null;
  /** Present only when it was verified against the configured client CA. */
  readonly certificate: DetailedPeerCertificate | null;
  /** Why the certificate that was shown counts for nothing; null when none was shown or it is good. */
  readonly certificateError: string | null;
  /** To be called once somebody has signed in here. */
  readonly signedIn?: () => void;
}

const unknownPeer: Peer = { address: null, certificate: null, certificateError: null };

/** In the context values of every call. */
export const peerKey = createContextKey<Peer>(unknownPeer, { description: "peer" });

export function peerOf(socket: Socket): Peer {
  const address = socket.remoteAddress ?? null;
  if (!isTls(socket)) return { address, certificate: null, certificateError: null };
  const shown = socket.getPeerCertificate(true);
  // Node hands out an empty object where no certificate was shown.
  if (Object.keys(shown).length === 0) return { address, certificate: null, certificateError: null };
  return socket.authorized
    ? { address, certificate: shown, certificateError: null }
    : { address, certificate: null, certificateError: String(socket.authorizationError ?? "not verified") };
}

/** HTTP/2 hands out its sockets behind a proxy, on which `instanceof` alone cannot be relied. */
const isTls = (socket: Socket): socket is TLSSocket =>
  socket instanceof TLSSocket || ("encrypted" in socket && socket.encrypted === true);
