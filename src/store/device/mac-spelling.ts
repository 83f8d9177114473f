import { parseMac } from "../../kernel/ids.ts";

/** For filters: in any notation. What is no MAC address is looked for as it is, and found nowhere. */
export const macSpelling = {
  spell(text: string): string {
    try {
      return parseMac(text, "filter");
    } catch {
      return text;
    }
  },
};
