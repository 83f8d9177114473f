import { z } from "zod";
import { word } from "./fields.ts";
import { mediumDigest } from "./medium.ts";

/** An installer that machines can boot from virtual media, from the network or by HTTP. */
export interface ImageSpec {
  /** How plans name it. */
  readonly ref: string;
  readonly digest: string;
  /** Where its installation medium lies. The name of its file is what it is recognised by; the control API serves it under that too. */
  readonly url: string;
  readonly kubeletVersion: string;
}

export const imageSchema = z.strictObject({
  ref: word,
  digest: z
    .string()
    .regex(/^sha256:[0-9a-f]{64}$/, "must be sha256: and 64 lower-case hexadecimal digits")
    .optional(),
  url: z.url().max(500).optional(),
  kubelet_version: word.optional(),
});

/** Those that the built-in plans name; the first is on the disks from the start. */
export const DEFAULT_IMAGE_REFS = ["ubuntu:22.04-k8s", "ubuntu-22.04"] as const;
export const DEFAULT_PXE_PROFILE = "pxe-ubuntu-22.04";

export const imageOf = (entry: z.infer<typeof imageSchema>): ImageSpec => ({
  ref: entry.ref,
  digest: entry.digest ?? mediumDigest(entry.ref),
  url: entry.url ?? `http://images.invalid/${entry.ref.replaceAll(/[^A-Za-z0-9._-]+/g, "-")}.iso`,
  kubeletVersion: entry.kubelet_version ?? "v1.31.4",
});

/** What an installation was asked for, beside the image itself. */
export interface InstallOrder {
  readonly image: ImageSpec;
  readonly cloudInit: string | null;
  readonly token: string | null;
}

/**
 * The image that a medium's address means: by the address itself, or by its file name, since sites keep mirrors. The query
 * says what the installation is given: `cloud_init` and `token`.
 */
export function orderFromUrl(url: string, images: readonly ImageSpec[]): InstallOrder | undefined {
  if (!URL.canParse(url)) return undefined;
  const { origin, pathname, searchParams } = new URL(url);
  const image =
    images.find((candidate) => candidate.url === `${origin}${pathname}`) ??
    images.find((candidate) => fileName(candidate.url) === decodeName(fileName(pathname)));
  if (image === undefined) return undefined;
  return { image, cloudInit: searchParams.get("cloud_init"), token: searchParams.get("token") };
}

/** The medium that the control API serves under this name. */
export const mediumNamed = (name: string, images: readonly ImageSpec[]): ImageSpec | undefined =>
  images.find(({ url }) => fileName(url) === name);

export const mediumOf = ({ url }: ImageSpec): string => fileName(url);

const fileName = (path: string): string => path.slice(path.lastIndexOf("/") + 1);

function decodeName(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
