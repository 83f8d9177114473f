import { describe, expect, test } from "vitest";
import { type ClientCertificate, identifyCertificate } from "./client-certificate.ts";

const certificate = (subject: object, subjectaltname?: string) =>
  ({ subject, subjectaltname }) as unknown as ClientCertificate;

const mapping = {
  "spiffe://site.example/service/flow": ["Flow"],
  "spiffe://site.example/ops/*": ["operator"],
  "CN=pat": ["viewer"],
  "OU=admins": ["admin"],
};

describe("client certificates", () => {
  test("of people are named by their common name; roles of all entries that match add up", () => {
    expect(identifyCertificate(certificate({ CN: "pat", OU: "admins" }), mapping)).toMatchObject({
      name: "pat",
      roles: ["viewer", "admin"],
    });
    expect(identifyCertificate(certificate({ CN: "kim", OU: ["staff", "admins"] }), mapping)).toMatchObject({
      name: "kim",
      roles: ["admin"],
    });
    expect(identifyCertificate(certificate({ CN: "lee" }), mapping)).toMatchObject({ name: "lee", roles: [] });
  });

  test("of workloads are named by their SPIFFE id, exactly or below a path", () => {
    const flow = certificate({}, "DNS:flow.example, URI:spiffe://site.example/service/flow");
    expect(identifyCertificate(flow, mapping)).toMatchObject({
      name: "spiffe://site.example/service/flow",
      roles: ["Flow"],
    });
    expect(identifyCertificate(certificate({}, "URI:spiffe://site.example/ops/a/b"), mapping).roles).toEqual([
      "operator",
    ]);
    expect(identifyCertificate(certificate({}, "URI:spiffe://site.example/opsy"), mapping).roles).toEqual([]);
    expect(identifyCertificate(certificate({}, "URI:spiffe://site.example/service/flow/x"), mapping).roles).toEqual([]);
  });

  test("of workloads gain nothing by their subject", () => {
    const sly = certificate({ CN: "pat", OU: "admins" }, "URI:spiffe://site.example/service/other");
    expect(identifyCertificate(sly, mapping)).toMatchObject({ name: "spiffe://site.example/service/other", roles: [] });
  });

  test.each([
    ["two SPIFFE ids", "URI:spiffe://site.example/service/flow, URI:spiffe://site.example/ops/a"],
    ["the same id twice", "URI:spiffe://site.example/service/flow, URI:spiffe://site.example/service/flow"],
    ["a SPIFFE id beside another URI", "URI:https://site.example, URI:spiffe://site.example/service/flow"],
    ["an id with a comma", 'URI:"spiffe://site.example/service/flow, DNS:y"'],
    ["a trust domain alone", "URI:spiffe://site.example"],
    ["an id with a question", "URI:spiffe://site.example/a?b"],
    ["a scheme in capitals", "URI:SPIFFE://site.example/service/flow"],
  ])("with %s are refused, and never fall back to their subject", (_what, altName) => {
    const person = certificate({ CN: "pat", OU: "admins" }, altName);
    expect(() => identifyCertificate(person, mapping)).toThrow(expect.objectContaining({ kind: "unauthenticated" }));
  });

  test.each([
    ["a URI inside of another name", 'DNS:"x, URI:spiffe://site.example/service/flow"'],
    ["a URI of another kind", "URI:https://site.example/pat"],
  ])("with %s are a person's", (_what, altName) => {
    expect(identifyCertificate(certificate({ CN: "x" }, altName), mapping)).toMatchObject({ name: "x", roles: [] });
  });

  test("with two common names are refused, whichever comes first", () => {
    for (const CN of [
      ["pat", "kim"],
      ["kim", "pat"],
    ])
      expect(() => identifyCertificate(certificate({ CN }), mapping)).toThrow("several common names");
  });

  test("without any name are refused", () => {
    expect(() => identifyCertificate(certificate({ O: "Example" }), mapping)).toThrow(
      "neither a SPIFFE id nor a common name",
    );
  });
});
