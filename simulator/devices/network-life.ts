import type { ImageSpec } from "../site/images.ts";
import { BOOT_MS, flipped, type LifeSurroundings, logged, restarted } from "./machine-life.ts";
import { counted, type Life, type MachineState } from "./machine-state.ts";

/** A change of a machine that has booted from the network, at a simulated time. */
export type NetworkChange = (state: MachineState, at: number, around: LifeSurroundings) => MachineState;

/** How long firmware takes to come round to the network again. */
const BOOT_ORDER_MS = 120_000;

/** The script ended: on to the disk. With an empty one the boot order begins again. */
export const onToDisk: NetworkChange = (state, at, around) => {
  const life: Life =
    state.os === null ? { is: "post", until: at + BOOT_ORDER_MS } : { is: "booting", until: at + BOOT_MS };
  return logged({ ...state, life }, around, [state.os === null ? "no_boot_device" : "boot_from_disk", at]);
};

/** It runs what it has loaded. */
export const kernelStarted =
  (words: Readonly<Record<string, string>>): NetworkChange =>
  (state) =>
    inBoot(state, (life) => ({ ...life, kernel: { words, progress: 0, isCut: false } }));

export const progressMade =
  (progress: number): NetworkChange =>
  (state) =>
    inBoot(state, (life) => ({ ...life, ...(life.kernel && { kernel: { ...life.kernel, progress } }) }));

/** Nothing that it says is heard any more, and it hears nothing: only a reset helps. */
export const networkCut: NetworkChange = (state) =>
  inBoot(state, (life) => ({ ...life, ...(life.kernel && { kernel: { ...life.kernel, isCut: true } }) }));

export const screenShown =
  (screen: string): NetworkChange =>
  (state) =>
    inBoot(state, (life) => ({ ...life, screen }));

const inBoot = (state: MachineState, change: (life: Extract<Life, { is: "network_boot" }>) => Life): MachineState =>
  state.life.is === "network_boot" ? { ...state, life: change(state.life) } : state;

/** The disk is overwritten first: what was on it is gone, however the installation ends. */
export const diskBegun: NetworkChange = (state) => ({
  ...state,
  os: null,
  kubelet: null,
  files: {},
  network: null,
  effects: counted(state.effects, "installs_started"),
});

export const networkInstalled =
  (order: {
    readonly image: ImageSpec;
    readonly cloudInit: string | null;
    readonly token: string | null;
  }): NetworkChange =>
  (state, at, around) => {
    const effects = counted(state.effects, "installs");
    const { image, cloudInit, token } = order;
    const os = {
      image: image.ref,
      digest: image.digest,
      kubeletVersion: image.kubeletVersion,
      cloudInit,
      token,
      source: "pxe",
      number: effects.installs,
      installedAt: Math.round(around.realTimeOf(at)),
    } as const;
    return logged({ ...state, os, effects }, around, ["install_completed", at]);
  };

/** What it booted has ended: it boots again. */
export const bootedAgain: NetworkChange = (state, at, around) => restarted(state, at, around);

export const networkInstallFailed: NetworkChange = (state, at, around) =>
  logged({ ...state, effects: counted(state.effects, "installs_failed") }, around, ["install_failed", at]);

/** It stops in the middle of what it does. */
export const networkDied: NetworkChange = (state, at, around) =>
  logged({ ...state, life: { is: "hung", why: "kernel_panic" }, effects: counted(state.effects, "crashes") }, around, [
    "os_crashed",
    at,
  ]);

/** Nothing is left on it, and it is off. */
export const erasedAndOff: NetworkChange = (state, at, around) =>
  flipped({ ...diskBegun(state, at, around), effects: state.effects }, "off", at, around);
