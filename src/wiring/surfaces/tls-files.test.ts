import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createCertificate } from "../../../simulator/certificate/certificate.ts";
import { silentLog } from "../../kernel/log.ts";
import { milliseconds } from "../../kernel/time/duration.ts";
import { TlsFiles } from "./tls-files.ts";

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "millwright-tls-files-"));
});
afterEach(() => rmSync(directory, { recursive: true }));

const makePair = () => createCertificate({ addresses: ["127.0.0.1"], now: new Date() });
const at = (...path: string[]) => join(directory, ...path);
const paths = () => ({ certFile: at("tls.crt"), keyFile: at("tls.key"), clientCaFile: null });

function write(pair: { readonly cert: string; readonly key: string }, into = "."): void {
  writeFileSync(at(into, "tls.crt"), pair.cert);
  writeFileSync(at(into, "tls.key"), pair.key, { mode: 0o600 });
}

function open() {
  const errors: object[] = [];
  const renewed: unknown[] = [];
  const files = new TlsFiles(paths(), { ...silentLog, error: (fields) => void errors.push(fields) });
  files.onRenewed(({ cert }) => renewed.push(cert));
  return { files, errors, renewed };
}

describe("the certificate files", () => {
  test("a key that is not the certificate's ends the start, and both files are named", () => {
    write({ cert: makePair().cert, key: makePair().key });
    expect(open).toThrow(
      `tls.key_file: the key in ${at("tls.key")} is not that of the certificate in ${at("tls.crt")} (tls.cert_file)`,
    );
  });

  test("a file that is missing, and one that holds something else, end the start and are named", () => {
    writeFileSync(at("tls.crt"), makePair().cert);
    expect(open).toThrow(`tls.key_file: ${at("tls.key")} cannot be read: ENOENT`);
    writeFileSync(at("tls.key"), "no key");
    expect(open).toThrow(`tls.key_file: ${at("tls.key")} holds no private key in PEM that can be used: `);
  });

  test("a new pair is served from the next look on, and told once", () => {
    write(makePair());
    const { files, renewed } = open();
    files.refresh();
    expect(renewed).toEqual([]);
    const next = makePair();
    write(next);
    files.refresh();
    files.refresh();
    expect(renewed).toEqual([next.cert]);
    expect(files.material).toEqual(next);
  });

  test("a pair that does not belong together is named at the second look, the earlier one stays, and its mending ends that", () => {
    const first = makePair();
    write(first);
    const { files, errors, renewed } = open();
    const next = makePair();
    write({ cert: next.cert, key: first.key }); // half written, perhaps
    files.refresh();
    expect({ errors, trouble: files.trouble }).toEqual({ errors: [], trouble: null });
    files.refresh();
    files.refresh();
    const why = `tls.key_file: the key in ${at("tls.key")} is not that of the certificate in ${at("tls.crt")} (tls.cert_file)`;
    expect({ errors, trouble: files.trouble }).toEqual({ errors: [{ error: why }], trouble: why });
    expect({ renewed, served: files.material }).toEqual({ renewed: [], served: first });
    write(next);
    files.refresh();
    expect({ renewed, trouble: files.trouble }).toEqual({ renewed: [next.cert], trouble: null });
  });

  test("who asks for it is told at once, also of a file that is gone", () => {
    write(makePair());
    const { files, errors } = open();
    rmSync(at("tls.crt"));
    files.refresh({ now: true });
    expect(errors).toEqual([{ error: expect.stringContaining(`tls.cert_file: ${at("tls.crt")} cannot be read`) }]);
  });

  test("are followed through the link that Kubernetes swaps", async () => {
    const [first, next] = [makePair(), makePair()];
    for (const [name, pair] of Object.entries({ "..1": first, "..2": next })) {
      mkdirSync(at(name));
      write(pair, name);
    }
    symlinkSync("..1", at("..data"));
    for (const name of ["tls.crt", "tls.key"]) symlinkSync(join("..data", name), at(name));
    const { files } = open();
    expect(files.material).toEqual(first);
    const renewed = new Promise((resolve) => files.onRenewed(resolve));
    const stopping = new AbortController();
    const following = files.follow(stopping.signal, milliseconds(5));
    symlinkSync("..2", at("..data_tmp"));
    renameSync(at("..data_tmp"), at("..data"));
    expect(await renewed).toEqual(next);
    stopping.abort();
    await following;
  });
});
