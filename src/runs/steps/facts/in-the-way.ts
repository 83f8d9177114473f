import type { Cause, Peer } from "../../../kernel/causes.ts";

/** Nobody answers there, which a machine on its way up looks like as well. */
export const silent = (at: Peer, progress?: string): Cause => ({
  code: "unreachable",
  facts: { at, ...(progress !== undefined && { progress }) },
});

/** Accepted, and nothing shows; which counts only once the time is over. */
export const NO_EFFECT: Cause = { code: "no_effect", facts: { at: "bmc" } };

/** An installation that has not come up; which counts only once the time is over. */
export const notInstalled = (progress?: string): Cause => ({
  code: "install_failed",
  ...(progress !== undefined && { facts: { progress } }),
});

/** A cluster that does not show the machine as it must. */
export const notReady = (name?: string): Cause => ({
  code: "node_not_ready",
  ...(name !== undefined && { facts: { name } }),
});
