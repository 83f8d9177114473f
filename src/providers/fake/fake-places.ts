import type { BmcTarget } from "../../capabilities/bmc-target.ts";
import type { ClusterTarget } from "../../capabilities/cluster-target.ts";
import type { SshTarget } from "../../capabilities/ssh-target.ts";

/**
 * Where fake machines and clusters are: nowhere on any network. The address is the machine's id, whatever endpoints it has on
 * record, so that no real machine can be meant by it; the credentials open nothing else.
 */
export const FAKE_PORT = 1;
export const FAKE_PASSWORD = "of-a-fake-machine";
export const FAKE_PRIVATE_KEY = "the private key of fake machines";
export const FAKE_TOKEN = "of-a-fake-cluster";
const API_SUFFIX = ".fake:6443";

export const fakeBmc = (machineId: string): BmcTarget => ({
  address: machineId,
  port: FAKE_PORT,
  scheme: "https",
  username: "fake",
  password: FAKE_PASSWORD,
  trust: { mode: "off" },
  noun: "fake machine",
});

export const fakeSsh = (machineId: string): SshTarget => ({
  address: machineId,
  port: FAKE_PORT,
  username: "fake",
  credentials: { privateKey: FAKE_PRIVATE_KEY },
  hostKey: null,
  jumpHosts: [],
});

export const fakeCluster = (name: string): ClusterTarget => ({
  name,
  apiUrl: `https://${name}${API_SUFFIX}`,
  ca: null,
  credentials: { token: FAKE_TOKEN },
});

/** `host:port` of its API, as nodes reach it, and back. */
export const endpointOfCluster = (name: string): string => `${name}${API_SUFFIX}`;
export const clusterOfEndpoint = (endpoint: string): string =>
  endpoint.endsWith(API_SUFFIX) ? endpoint.slice(0, -API_SUFFIX.length) : endpoint;
