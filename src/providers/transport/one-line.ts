// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what must not reach a terminal
const UNFIT = /[\s\u0000-\u001f\u007f-\u009f]+/g;

/** What a device said, fit to be shown: on one line, without control characters, and no longer than that. */
export const oneLine = (text: string, longest: number): string => text.replace(UNFIT, " ").trim().slice(0, longest);
