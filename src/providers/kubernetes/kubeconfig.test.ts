import { X509Certificate } from "node:crypto";
import { describe, expect, test } from "vitest";
import { CERTIFICATE, KEY } from "../../../test/support/counterparts/client-certificate.ts";
import { expiredSince } from "./credentials.ts";
import { targetOfKubeconfig } from "./kubeconfig.ts";

const kubeconfig = (user: string, cluster = "server: https://10.0.0.1:6443/", more = "current-context: a") => `
apiVersion: v1
kind: Config
${more}
contexts: [{ name: a, context: { cluster: k, user: u, namespace: n } }, { name: b, context: { cluster: k, user: u } }]
clusters: [{ name: k, cluster: { ${cluster} } }]
users: [{ name: u, user: { ${user} } }]
`;
const base64 = (text: string) => Buffer.from(text).toString("base64");
const targetOf = (user: string, cluster?: string, more?: string) =>
  targetOfKubeconfig("c1", kubeconfig(user, cluster, more));

describe("a kubeconfig", () => {
  test("with a token, or with a certificate, is a target", () => {
    expect(targetOf("token: abc")).toEqual({
      name: "c1",
      apiUrl: "https://10.0.0.1:6443",
      ca: null,
      credentials: { token: "abc" },
    });
    const material = `client-certificate-data: ${base64(CERTIFICATE)}, client-key-data: ${base64(KEY)}`;
    expect(targetOf(material, `server: https://k, certificate-authority-data: ${base64(CERTIFICATE)}`)).toMatchObject({
      ca: CERTIFICATE,
      credentials: { certificate: CERTIFICATE, key: KEY },
    });
  });

  test("says whom to act as, which name the certificate has, and a path below which the API is", () => {
    const user = "token: abc, as: kim, as-uid: '7', as-groups: [ops], as-user-extra: { reason: [night] }";
    const cluster =
      "server: https://rancher/k8s/clusters/c-1/, tls-server-name: api.example, disable-compression: true";
    expect(targetOf(user, cluster)).toEqual({
      name: "c1",
      apiUrl: "https://rancher/k8s/clusters/c-1",
      ca: null,
      credentials: { token: "abc" },
      tlsServerName: "api.example",
      actsAs: { user: "kim", uid: "7", groups: ["ops"], extra: { reason: ["night"] } },
    });
  });

  test("means its only context where none is current", () => {
    const text = `contexts: [{ name: a, context: { cluster: k, user: u } }]
clusters: [{ name: k, cluster: { server: 'https://k' } }]
users: [{ name: u, user: { token: abc } }]`;
    expect(targetOfKubeconfig("c1", text).apiUrl).toBe("https://k");
  });

  // biome-ignore format: a table is read by its columns
  test.each([
    ["exec: { command: aws, args: [secret] }",    undefined, "users.user.exec: is not taken"],
    ["token: secret, exec: { command: aws }",     undefined, "users.user.exec: is not taken"],
    ["auth-provider: { name: oidc }",             undefined, "users.user.auth-provider: is not taken"],
    ["tokenFile: /etc/secret",                    undefined, "users.user.tokenFile: is a file on your side"],
    ["client-certificate: /etc/secret.pem",       undefined, "give client-certificate-data"],
    ["username: kim, password: secret",           undefined, "users.user.username: is not taken"],
    ["token: secret, impersonate: root",          undefined, "users.user.impersonate: is not known here"],
    ["token: secret, as-groups: [system:masters]", undefined, "users.user.as: is required"],
    ["token: secret, as: \"kim\\nX-Secret: 1\"",  undefined, "printable ASCII"],
    ["token: 12345",                              undefined, "users.user.token: must be a text"],
    ["token: 'secret secret'",                    undefined, "users.user.token: has characters"],
    ["{}",                                        undefined, "must have a token"],
    ["client-certificate-data: c2VjcmV0, client-key-data: c2VjcmV0", undefined, "no certificate and its key"],
    ["token: secret", "server: https://k, insecure-skip-tls-verify: true",      "insecure-skip-tls-verify: is not taken"],
    ["token: secret", "server: https://k, proxy-url: 'http://secret:1@proxy'",  "proxy-url: is not taken"],
    ["token: secret", "server: https://k, certificate-authority: /etc/secret",  "give certificate-authority-data"],
    ["token: secret", "server: https://k, certificate-authority-data: c2VjcmV0", "is no certificate in PEM"],
    ["token: secret", "server: 'file:///etc/secret'",                           "must be an https address"],
    ["token: secret", "server: 'https://kim:secret@k'",                         "must be an https address without credentials"],
    ["token: secret", "server: 'http://k'",                                     "everybody on the way could read the token"],
  ])("with %s (%s) is refused by name, and its secrets are not repeated", (user, cluster, expected) => {
    const refused = () => targetOf(user === "{}" ? "" : user, cluster);
    expect(refused).toThrow(expected);
    expect(refused).not.toThrow("secret");
  });

  test.each([
    ["several contexts and none that is current", "", "current-context: is required, since there are 2 contexts"],
    ["a current context that it does not have", "current-context: c", "names no context that it has"],
  ])("with %s is refused", (_, more, expected) => {
    expect(() => targetOf("token: abc", undefined, more)).toThrow(expected);
  });

  test("with two users of one name is refused, and not read as one of them", () => {
    const text = kubeconfig("token: abc").replace("users: [", "users: [{ name: u, user: { token: other } }, ");
    expect(() => targetOfKubeconfig("c1", text)).toThrow("users: has two entries of one name");
  });

  test("that is off or empty in what is not taken is taken", () => {
    expect(
      targetOf("token: abc, exec: null, as: ''", "server: https://k, insecure-skip-tls-verify: false"),
    ).toMatchObject({
      credentials: { token: "abc" },
    });
  });

  test("that is no YAML is refused without being quoted", () => {
    expect(() => targetOfKubeconfig("c1", "token: [secret")).toThrow(/^kubeconfig: is not YAML$/);
  });
});

test("credentials that were refused after their time say when that was", () => {
  const end = new X509Certificate(CERTIFICATE).validToDate;
  const later = new Date(end.getTime() + 1_000);
  const jwt = `e30.${Buffer.from(JSON.stringify({ exp: 1_700_000_000 })).toString("base64url")}.sig`;
  expect(expiredSince({ token: jwt }, later)).toBe("; its token expired at 2023-11-14T22:13:20.000Z");
  const certified = { certificate: CERTIFICATE, key: KEY };
  expect(expiredSince(certified, later)).toBe(`; its client certificate expired at ${end.toISOString()}`);
  expect(expiredSince(certified, new Date(end.getTime() - 1_000))).toBe("");
  expect(expiredSince({ token: "opaque" }, later)).toBe("");
});
