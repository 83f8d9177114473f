import { describe, expect, test } from "vitest";
import { requireOwnPage } from "./own-page.ts";
import { sessionCookie, sessionIn } from "./session-cookie.ts";

describe("the cookie of a session", () => {
  test("is for no script and no other site, and for this host alone where there is TLS", () => {
    expect(sessionCookie("a.b", { isSecure: false, maxAgeSeconds: 60.9 })).toBe(
      "millwright-session=a.b; Path=/; HttpOnly; SameSite=Strict; Max-Age=60",
    );
    expect(sessionCookie("a.b", { isSecure: true, maxAgeSeconds: 0 })).toBe(
      "__Host-millwright-session=a.b; Path=/; HttpOnly; SameSite=Strict; Secure; Max-Age=0",
    );
  });

  test.each([
    [null, undefined],
    ["", undefined],
    ["other=1", undefined],
    ["other=1; millwright-session=a.b", "a.b"],
    ["millwright-session=", undefined],
    ["millwright-session=plain; __Host-millwright-session=own", "own"],
    ["xmillwright-session=a.b", undefined],
  ])("is found in %j as %j", (cookies, found) => {
    expect(sessionIn(cookies)).toBe(found);
  });
});

test.each<[Record<string, string>, boolean]>([
  [{ "sec-fetch-site": "same-origin" }, true],
  [{ origin: "http://10.0.0.5:8080" }, true],
  [{}, false],
  [{ "sec-fetch-site": "none" }, false],
  [{ "sec-fetch-site": "same-site", origin: "http://other.example" }, false],
  [{ "sec-fetch-site": "cross-site" }, false],
])("a session is good for a request with %j: %j", (headers, isGood) => {
  const ask = () => requireOwnPage(new Headers(headers));
  if (isGood) expect(ask).not.toThrow();
  else expect(ask).toThrow("console's own pages");
});
