import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { BootDecision } from "../../../lifecycles/install/boot-decision.ts";
import { type BootScript, writeBootScript, writeFirstScript } from "./boot-script.ts";

const script = (decision: BootDecision, more: Partial<BootScript> = {}) =>
  writeBootScript({ decision, server: "http://10.0.0.1:8080", mac: "02:00:5e:10:00:01", nodeId: "m-1", ...more });
/** As workflows and iPXE write them. */
const variable = (name: string) => `\${${name}}`;
const INSTALL: BootDecision = { type: "install", attempt: 1 };

describe("a boot script", () => {
  test("begins as iPXE wants it and ends with a line end", () => {
    const text = script({ type: "local", why: "active" });
    expect(text.split("\n")[0]).toBe("#!ipxe");
    expect(text.endsWith("exit\n")).toBe(true);
  });

  test("loads kernel and initrd by name, tells the installer where to report, and falls back to the disk", () => {
    const text = script(INSTALL, {
      token: "t0ken",
      boot: {
        method: "kernel",
        kernel_url: "/files/k",
        initrd_url: "http://mirror/i",
        cmdline: `console=ttyS0 n=${variable("node_id")}`,
      },
    });
    expect(text).toContain(
      "kernel http://10.0.0.1:8080/files/k initrd=initrd console=ttyS0 n=m-1 millwright.server=http://10.0.0.1:8080 " +
        "millwright.node=m-1 millwright.mac=02:00:5e:10:00:01 millwright.token=t0ken || goto failed",
    );
    expect(text).toContain("initrd --name initrd http://mirror/i || goto failed");
    expect(text.indexOf("boot || goto failed")).toBeLessThan(text.indexOf(":failed"));
    expect(text.trimEnd().endsWith("exit")).toBe(true);
  });

  test("has a way for each method", () => {
    expect(script(INSTALL, { boot: { method: "sanboot", iso_url: "/files/a.iso" } })).toContain(
      "sanboot --no-describe http://10.0.0.1:8080/files/a.iso || goto failed",
    );
    expect(script(INSTALL, { boot: { method: "chain", chain_url: `http://b/x.ipxe?m=${variable("mac")}` } })).toContain(
      "chain --replace --autofree http://b/x.ipxe?m=02:00:5e:10:00:01 || goto failed",
    );
    const image = script(INSTALL, {
      boot: {
        method: "image",
        kernel_url: "/files/k",
        initrd_url: "/files/i",
        cmdline: "",
        image_url: "/files/disk.raw",
        image_digest: `sha256:${"0".repeat(64)}`,
        target_device: "/dev/nvme0n1",
      },
    });
    expect(image).toContain("millwright.image=http://10.0.0.1:8080/files/disk.raw");
    expect(image).toContain("millwright.target=/dev/nvme0n1");
  });

  test("puts in the server, the node, its MAC address and the address that it has", () => {
    const cmdline = ["server", "node_id", "mac", "ip"].map(variable).join(" ");
    const text = script(INSTALL, { ip: "10.0.0.7", boot: { method: "kernel", kernel_url: "/files/k", cmdline } });
    expect(text).toContain("kernel http://10.0.0.1:8080/files/k http://10.0.0.1:8080 m-1 02:00:5e:10:00:01 10.0.0.7 ");
  });

  test.each([
    { method: "chain", chain_url: `http://b/x.ipxe?t=${variable("token")}` },
    { method: "sanboot", iso_url: `http://b/x.ipxe?t=${variable("token")}` },
  ] as const)("gives the token of the boot to what it loads by $method", (boot) => {
    expect(script(INSTALL, { token: "t0ken", boot })).toContain("http://b/x.ipxe?t=t0ken || goto failed");
  });

  test("says where this boot finds its seed", () => {
    const cmdline = `ds=nocloud-net;s=${variable("seed")}`;
    const text = script(INSTALL, { token: "t0ken", boot: { method: "kernel", kernel_url: "/files/k", cmdline } });
    expect(text).toContain("ds=nocloud-net;s=http://10.0.0.1:8080/seeds/node.m-1/t0ken/ ");
  });

  test("leaves iPXE its own variables", () => {
    const boot = { method: "kernel", kernel_url: `http://x/${variable("buildarch")}/k`, cmdline: "" } as const;
    expect(script(INSTALL, { boot })).toContain(`http://x/${variable("buildarch")}/k`);
  });

  test("that a DHCP server names asks on with the address that the machine boots with, and falls back to the disk", () => {
    const lines = writeFirstScript("http://10.0.0.1:8080").trimEnd().split("\n");
    expect(lines[0]).toBe("#!ipxe");
    expect(lines[1]).toContain(`http://10.0.0.1:8080/api/v1/boot?mac=${variable("netX/mac")}&vendor=`);
    expect(lines[1]).toContain(`&serial=${variable("serial:uristring")}&`);
    expect(lines.at(-1)).toBe("exit");
  });

  test("asks again while nobody has said what to install", () => {
    const text = script({ type: "wait", why: "waits" });
    expect(text).toContain("sleep 10");
    expect(text).toContain(
      "chain --replace --autofree http://10.0.0.1:8080/api/v1/boot?mac=02:00:5e:10:00:01&serial=${serial:uristring}&uuid=${uuid} || goto again",
    );
  });

  test("never lets what a node or an error said become a command", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), (message) => {
        const lines = script({ type: "problem", message }).trimEnd().split("\n");
        expect(lines).toHaveLength(4);
        expect(lines[1]).toMatch(/^echo [\x20-\x7e]*$/);
        expect(lines[1]).not.toMatch(/\$\{|&&|\|\||;/);
      }),
    );
  });
});
