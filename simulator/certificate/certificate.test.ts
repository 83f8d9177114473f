import { X509Certificate } from "node:crypto";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { connect, createServer } from "node:tls";
import { describe, expect, test } from "vitest";
import { temporaryDataDir } from "../testing/temporary-simulator.ts";
import { type Certificate, createCertificate, loadOrCreateCertificate } from "./certificate.ts";

const now = new Date();

async function shakeHands(
  shown: Certificate,
  host: string,
  ca: string,
): Promise<{ authorized: boolean; reason: string }> {
  const server = createServer(shown).listen(0, "0.0.0.0");
  server.on("tlsClientError", () => {});
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const socket = connect({ host, port, ca, rejectUnauthorized: false });
  await once(socket, "secureConnect");
  const result = { authorized: socket.authorized, reason: String(socket.authorizationError) };
  socket.destroy();
  server.close();
  return result;
}

describe("certificate", () => {
  test("a TLS client that trusts it accepts it at the addresses it names", async () => {
    const certificate = createCertificate({ addresses: ["127.64.1.1", "127.64.1.2"], now });
    expect(await shakeHands(certificate, "127.64.1.2", certificate.cert)).toMatchObject({ authorized: true });
  });

  test("a TLS client refuses it at an address that it does not name", async () => {
    const certificate = createCertificate({ addresses: ["127.64.1.1"], now });
    const result = await shakeHands(certificate, "127.64.1.3", certificate.cert);
    expect(result).toMatchObject({ authorized: false, reason: expect.stringContaining("ALTNAME") });
  });

  test("a TLS client that trusts another one refuses it", async () => {
    const certificate = createCertificate({ addresses: ["127.64.1.1"], now });
    const other = createCertificate({ addresses: ["127.64.1.1"], now });
    expect(await shakeHands(certificate, "127.64.1.1", other.cert)).toMatchObject({ authorized: false });
  });

  test("it is its own issuer, signed with its own key, valid from yesterday for ten years", () => {
    const { cert } = createCertificate({ addresses: ["127.64.1.1"], now });
    const parsed = new X509Certificate(cert);
    expect(parsed.verify(parsed.publicKey)).toBe(true);
    expect(parsed.checkIssued(parsed)).toBe(true);
    expect(parsed.ca).toBe(true);
    expect(parsed.subjectAltName).toBe("DNS:localhost, IP Address:127.64.1.1");
    expect(parsed.validFromDate.getTime()).toBeLessThan(now.getTime());
    expect(parsed.validToDate.getTime() - now.getTime()).toBeGreaterThan(3_600 * 86_400_000);
  });

  test("it stays the same for as long as the data directory lives", () => {
    using dir = temporaryDataDir();
    const first = loadOrCreateCertificate(dir.path, ["127.64.1.1"], now);
    expect(loadOrCreateCertificate(dir.path, ["127.64.1.1", "127.64.1.2"], now)).toEqual(first);
  });
});
