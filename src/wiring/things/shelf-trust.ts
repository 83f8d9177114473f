import type { TlsTrust } from "../../capabilities/bmc-target.ts";

/** How a shelf's certificate is checked: against the one that it showed first, where that is how it is trusted. */
export const shelfTrust = (mode: TlsTrust["mode"], fingerprint: string | null): TlsTrust =>
  mode === "pin" && fingerprint !== null ? { mode, fingerprint256: fingerprint } : { mode };
