/** What a controller reads of an image before it writes it. */
export interface FirmwareImage {
  readonly model: string;
  readonly component: string;
  readonly version: string;
  readonly bytes: number;
  /** `sha256:…` */
  readonly digest: string;
}

const IMAGE_MARK = "MILLWRIGHT-FW";
/** The first line says what it is for; more is never looked at. */
export const HEAD_BYTES = 4_096;

/** The first line of an image: model, component and version, none of which has a space in it. */
export const headerOf = (image: Pick<FirmwareImage, "model" | "component" | "version">): string =>
  `${IMAGE_MARK} ${image.model} ${image.component} ${image.version}\n`;

/** @param whole how long it is altogether, and its digest */
export function readImage(
  head: Buffer,
  whole: { readonly bytes: number; readonly digest: string },
): FirmwareImage | { readonly why: string } {
  const [line = ""] = head.subarray(0, HEAD_BYTES).toString("latin1").split("\n", 1);
  const [mark, model, component, version, ...more] = line.split(" ");
  if (mark !== IMAGE_MARK || model === undefined || component === undefined || !version || more.length > 0)
    return { why: "it is not a firmware image" };
  return { model, component, version, ...whole };
}
