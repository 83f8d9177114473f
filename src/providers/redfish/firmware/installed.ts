import type { InstalledFirmware } from "../../../capabilities/rack/firmware.ts";
import { lastSegment, type Resource, textAt, valueAt } from "../resource.ts";

/**
 * Our words for parts, by what makers call them; the first that fits. A part that guards another has the other's name in its own
 * (`ERoT_BMC_0`), so such words come first.
 */
const COMPONENTS: readonly (readonly [RegExp, string])[] = [
  [/erot/i, "erot"],
  [/cpld/i, "cpld"],
  [/fpga/i, "fpga"],
  [/nvos|onie|network[-_ ]?os/i, "nvos"],
  [/bios|uefi/i, "bios"],
  [/psu|power[-_ ]?supply/i, "psu"],
  [/pmc|power[-_ ]?(?:shelf|management)[-_ ]?controller/i, "pmc"],
  [/bmc|\bmanager\b/i, "bmc"],
];

const wordOf = (text: string): string | undefined => COMPONENTS.find(([called]) => called.test(text))?.[1];

/** One entry of the firmware inventory, as we speak of it. */
export function describeInstalled(path: string, item: Resource): InstalledFirmware {
  const id = textAt(item, "Id") ?? lastSegment(path);
  return {
    // The id tells more: names are written for people, and may tell what a part is connected to.
    component: wordOf(id) ?? wordOf(textAt(item, "Name") ?? "") ?? id.toLowerCase(),
    id,
    path,
    version: textAt(item, "Version") ?? null,
    updateable: valueAt(item, "Updateable") !== false,
  };
}
