// biome-ignore lint/suspicious/noControlCharactersInRegex: that is what they are
const ESCAPES = /\u001b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|[@-_])/g;
// biome-ignore lint/suspicious/noControlCharactersInRegex: as above
const UNSEEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

/** What devices and scripts write is hostile: nothing in it turns, hides or overwrites what stands beside it. */
export const harmless = (text: string): string => text.replace(ESCAPES, "").replace(UNSEEN, "�");
