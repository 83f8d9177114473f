/** White space, and what could command a terminal, hide, or make a line read backwards. */
const UNFIT = /[\s\p{Cc}\p{Cf}\p{Cs}]+/gu;

/** What a device said, fit to be shown: on one line, without control characters, and no longer than that. */
export const oneLine = (text: string, longest: number): string => text.replace(UNFIT, " ").trim().slice(0, longest);
