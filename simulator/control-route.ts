import type { MachineEndpoints } from "./control-descriptions.ts";
import type { Machine } from "./devices/machine.ts";
import type { PowerShelf } from "./devices/power-shelf.ts";
import type { Switch } from "./devices/switch.ts";
import type { FaultBook } from "./faults/fault-book.ts";
import type { Cluster } from "./kubernetes/cluster.ts";
import type { Region } from "./maas/region.ts";
import type { SimulatedClock } from "./simulated-clock.ts";
import type { Site } from "./site.ts";
import type { SiteKeys } from "./ssh/site-keys.ts";

/** A cluster as its users are told of it. */
export interface ClusterDescription {
  readonly name: string;
  /** Without TLS, for clients that send their token anyway. */
  readonly api_url: string;
  readonly api_url_tls: string;
  readonly token: string;
  readonly kubeconfig: string;
  readonly join_endpoint: string;
  readonly ca_certificate: string;
  readonly ca_cert_hash: string;
  readonly nodes: readonly string[];
}

export interface ControlOptions {
  readonly shelves: ReadonlyMap<string, PowerShelf>;
  readonly machines: ReadonlyMap<string, Machine>;
  readonly switches: ReadonlyMap<string, Switch>;
  readonly site: Site;
  readonly keys: SiteKeys;
  readonly clusters: () => readonly ClusterDescription[];
  clusterNamed(name: string): { readonly cluster: Cluster; readonly endpoint: string } | undefined;
  /** Undefined for a site that has none. */
  readonly rackManager: () => unknown;
  /** Undefined for a site without one. */
  readonly maas: () => { readonly region: Region; readonly url: string; readonly apiKey: string } | undefined;
  readonly faults: FaultBook;
  readonly clock: SimulatedClock;
  readonly endpoints: MachineEndpoints;
  readonly setSpeed: (speed: number) => void;
  readonly bootServer: { readonly url: string | null };
  readonly setBootServer: (url: string | null) => void;
  readonly log: (line: string) => void;
}

export interface Reply {
  readonly status: number;
  readonly body?: unknown;
  /** In place of a body that is JSON. */
  readonly content?: Buffer;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface ControlCall {
  readonly options: ControlOptions;
  /** The part of the path that the route leaves open. */
  readonly id: string;
  readonly query: URLSearchParams;
  /** As the caller wrote it: the address that it reaches us at. */
  readonly host: string;
  readonly range: string | undefined;
  readonly body: unknown;
}

export type Route = readonly [method: string, path: RegExp, handle: (call: ControlCall) => Reply];

export const ok = (body: unknown): Reply => ({ status: 200, body });
export const noContent: Reply = { status: 204 };
export const refused = (status: number, message: string, field?: string): Reply => ({
  status,
  body: { error: field === undefined ? { message } : { field, message } },
});
export const noDevice = (id: string): Reply => refused(404, `there is no device ${id}; GET /devices lists them`);

/** A file, or the range of it that was asked for. */
export function partOf(content: Buffer, range: string | undefined): Reply {
  const [, from, to = ""] = /^bytes=(\d{1,12})-(\d{0,12})$/.exec(range ?? "") ?? [];
  if (from === undefined) return { status: 200, content };
  const { length } = content;
  if (Number(from) >= length) return { status: 416, headers: { "Content-Range": `bytes */${length}` } };
  const last = to === "" ? length - 1 : Math.min(Number(to), length - 1);
  const headers = { "Content-Range": `bytes ${from}-${last}/${length}` };
  return { status: 206, content: content.subarray(Number(from), last + 1), headers };
}
