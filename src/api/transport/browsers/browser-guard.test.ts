import { describe, expect, test } from "vitest";
import { createBrowserGuard, type GuardedRequest } from "./browser-guard.ts";

const guard = createBrowserGuard({ hosts: ["mw.example", "*.site.example"], origins: ["https://console.example"] });
const RPC = "/millwright.v1.MachineService/ListMachines";

interface Sent {
  readonly method?: string;
  readonly url?: string;
  readonly [header: string]: string | undefined;
}

function verdict({ method = "POST", url = RPC, ...headers }: Sent): string {
  const request: GuardedRequest = { method, url, headers: { host: "mw.example", ...headers } };
  if (guard.hostRefusal(request)) return "host";
  return guard.originRefusal(request) ? "origin" : "served";
}

describe("the name that a request came for", () => {
  test.each([
    ["localhost:8080", "served"],
    ["console.localhost", "served"],
    ["127.0.0.1:8080", "served"],
    ["10.20.0.5", "served"],
    ["[fd00::5]:8080", "served"],
    ["mw.example:443", "served"],
    ["MW.Example.", "served"],
    ["a.site.example", "served"],
    ["a.b.site.example", "served"],
    ["site.example", "host"],
    ["notsite.example", "host"],
    ["evil.example", "host"],
    ["mw.example.evil.example", "host"],
    ["localhost.evil.example", "host"],
    ["127.0.0.1.evil.example", "host"],
    ["evil@127.0.0.1", "host"],
    ["2130706433", "host"],
    ["mw.example,evil.example", "host"],
    ["[evil]", "host"],
  ])("%s: %s", (host, expected) => {
    expect(verdict({ host })).toBe(expected);
  });

  test.each([
    "/healthz",
    "/readyz",
    "/api/v1/boot?mac=02:00:5e:10:00:01",
    "/api/v1/boot.ipxe",
    "/api/v1/boot/steps",
    "/api/v1/report",
    "/api/v1/nodes/n-1/installation-status",
    "/files/vmlinuz",
    "/seeds/machine/key/user-data",
    "/firmware/files/a/b/c/d",
    "/internal/v1/nodes/n-1/enroll",
  ])("is not asked of firmware, installers, agents and probes: %s", (url) => {
    expect(verdict({ method: "GET", url, host: "pxe.somewhere" })).toBe("served");
    // A page whose name was made to resolve to us is a browser all the same.
    expect(verdict({ method: "POST", url, host: "evil.example", origin: "http://evil.example" })).toBe("host");
  });

  test.each(["/metrics", "/api/v1/nodes", "/api/v1/bootx", "/api/v1/docs", "/", "/healthz/x"])(
    "is asked of %s",
    (url) => {
      expect(verdict({ method: "GET", url, host: "evil.example" })).toBe("host");
    },
  );

  test("may be any where the setting says so", () => {
    const open = createBrowserGuard({ hosts: ["*"], origins: [] });
    expect(open.hostRefusal({ method: "GET", url: "/", headers: { host: "what.ever" } })).toBeUndefined();
  });
});

describe("the page that sent a request", () => {
  test.each<[string, Sent, string]>([
    ["no page", {}, "served"],
    ["our own", { origin: "https://mw.example" }, "served"],
    ["our own behind a proxy that adds TLS", { host: "mw.example:443", origin: "https://mw.example" }, "served"],
    ["our own on a port", { host: "localhost:8080", origin: "http://localhost:8080" }, "served"],
    ["one of the settings", { origin: "https://console.example" }, "served"],
    ["a stranger's", { origin: "https://evil.example" }, "origin"],
    ["a stranger's with a bearer", { origin: "https://evil.example", authorization: "Bearer x" }, "origin"],
    ["another port of loopback", { host: "localhost:8080", origin: "http://localhost:3000" }, "origin"],
    ["one in a sandbox", { origin: "null" }, "origin"],
    ["one that only begins like ours", { origin: "https://mw.example.evil.example" }, "origin"],
    ["of no web scheme", { origin: "file://mw.example" }, "origin"],
    ["a preflight", { method: "OPTIONS", origin: "https://evil.example" }, "origin"],
    [
      "an image of a stranger's page",
      { method: "GET", url: "/api/v1/boot?mac=x", "sec-fetch-site": "cross-site" },
      "origin",
    ],
    ["a script of another port", { method: "GET", url: "/api/v1/nodes", "sec-fetch-site": "same-site" }, "origin"],
    ["typed by somebody", { method: "GET", url: "/api/v1/nodes", "sec-fetch-site": "none" }, "served"],
  ])("%s", (_what, sent, expected) => {
    expect(verdict(sent)).toBe(expected);
  });

  const followed = {
    method: "GET",
    "sec-fetch-site": "cross-site",
    "sec-fetch-mode": "navigate",
    "sec-fetch-dest": "document",
  };
  test.each<[string, Sent, string]>([
    ["a link to a document", { ...followed, url: "/" }, "served"],
    ["a link to the reference", { ...followed, url: "/api/v1/docs" }, "served"],
    ["a link that a redirect made anonymous", { ...followed, url: "/machines/m-1", origin: "null" }, "served"],
    ["coming back from signing in", { ...followed, url: "/auth/callback?code=1" }, "served"],
    [
      "coming back by a form",
      { ...followed, method: "POST", url: "/auth/callback", origin: "https://id.example" },
      "served",
    ],
    ["a link to data", { ...followed, url: "/api/v1/boot?mac=x" }, "origin"],
    ["a frame around a document", { ...followed, "sec-fetch-dest": "iframe", url: "/" }, "origin"],
    [
      "a form that posts to a document",
      { ...followed, method: "POST", url: "/", origin: "https://evil.example" },
      "origin",
    ],
    [
      "a script that calls back",
      { ...followed, "sec-fetch-mode": "cors", url: "/auth/callback", origin: "https://evil.example" },
      "origin",
    ],
  ])("navigation: %s", (_what, sent, expected) => {
    expect(verdict(sent)).toBe(expected);
  });
});
