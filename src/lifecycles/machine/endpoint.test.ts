import { expect, test } from "vitest";
import { bmcPortOf, parseBmcAddress, parseEndpoint, parseMachineAddress } from "./endpoint.ts";

test.each([
  ["10.0.0.7", { address: "10.0.0.7", port: null }],
  ["10.0.0.7:8443", { address: "10.0.0.7", port: 8443 }],
  ["bmc-7.example:22", { address: "bmc-7.example", port: 22 }],
  ["fe80::1", { address: "fe80::1", port: null }],
  ["[fe80::1]:22", { address: "fe80::1", port: 22 }],
])("%s is an endpoint", (text, endpoint) => {
  expect(parseEndpoint(text, "f")).toEqual(endpoint);
});

test.each(["", "a b", "10.0.0.7:0", "10.0.0.7:65536", "a:b:c", "[bmc]:22", "-a", "root@10.0.0.7"])(
  "%j is no endpoint, and the answer names the field",
  (text) => {
    expect(() => parseEndpoint(text, "f")).toThrow(
      expect.objectContaining({ kind: "invalid_argument", detail: { field: "f" } }),
    );
  },
);

test.each([
  "https://root:calvin@10.0.0.7",
  "root:calvin@10.0.0.7",
  "https://root:calvin@10.0.0.7/v1/nodes",
  "root:c@lvin@10.0.0.7",
])("a password that was given with an endpoint (%s) is not repeated in the answer", (text) => {
  for (const provider of ["redfish", "ironic"])
    expect(() => parseMachineAddress(provider, text, "f")).toThrow(
      /^f: "(https:\/\/)?…@10[^"]*" .*; an endpoint holds no user name or password/,
    );
});

test.each([
  ["10.0.0.7", "https", null, 443],
  ["https://10.0.0.7/", "https", null, 443],
  ["HTTP://10.0.0.7", "http", null, 80],
  ["http://10.0.0.7:8080", "http", 8080, 8080],
])("the BMC %s speaks %s", (text, scheme, port, listens) => {
  const bmc = parseBmcAddress(text, "f");
  expect(bmc).toEqual({ address: "10.0.0.7", port, scheme });
  expect(bmcPortOf({ ...bmc, protocol: null })).toBe(listens);
});

test("IPMI has a port of its own", () => {
  expect(bmcPortOf({ ...parseBmcAddress("10.0.0.7", "f"), protocol: "ipmi" })).toBe(623);
});

test.each(["ftp://10.0.0.7", "https://10.0.0.7/redfish", "https://"])("%s is no BMC", (text) => {
  expect(() => parseBmcAddress(text, "f")).toThrow("f: ");
});

test.each([
  ["https://10.0.0.7/redfish/v1/Systems/437XR1138R2", { scheme: "https", port: null, path: "437XR1138R2" }],
  ["10.0.0.7:8443/redfish/v1/Systems/1/", { scheme: "https", port: 8443, path: "1" }],
])("the system %s is one of several behind its BMC", (text, { path, ...place }) => {
  const system = { address: "10.0.0.7", ...place, path: `/redfish/v1/Systems/${path}` };
  for (const provider of ["datacenter", "redfish"]) expect(parseMachineAddress(provider, text, "f")).toEqual(system);
});

test.each([
  "https://10.0.0.7/redfish/v1/Systems",
  "10.0.0.7/redfish/v1/Systems/..%2f1",
  "10.0.0.7/redfish/v1/Chassis/1",
])("%s names no system", (text) => {
  expect(() => parseMachineAddress("redfish", text, "f")).toThrow("f: ");
});

test.each([
  ["https://ironic.example:6385/v1/nodes/n-1", { scheme: "https", port: 6385, path: "/v1/nodes/n-1" }],
  ["http://ironic.example/baremetal/v1/nodes/n_1/", { scheme: "http", port: null, path: "/baremetal/v1/nodes/n_1" }],
])("the node %s is one of many behind its address", (text, place) => {
  expect(parseMachineAddress("ironic", text, "f")).toEqual({ address: "ironic.example", ...place });
  expect(() => parseMachineAddress("redfish", text, "f")).toThrow("f: ");
});

test.each([
  "ironic.example",
  "https://ironic.example/v1/nodes",
  "https://ironic.example/v1/nodes/a?b",
  "https://ironic.example/v1/nodes/a/../b",
])("%s is no node of Ironic", (text) => {
  expect(() => parseMachineAddress("ironic", text, "f")).toThrow("f: ");
});
