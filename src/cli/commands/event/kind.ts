const SHORT_KINDS: { readonly [word: string]: string } = {
  ps: "power_shelf",
  eps: "expected_power_shelf",
  m: "machine",
  node: "install",
  group: "device_group",
  workflow: "install_workflow",
};

/** power-shelf, power_shelf and ps are one kind; what the server does not know it says itself. */
export const kindOf = (word: string): string => SHORT_KINDS[word] ?? word.toLowerCase().replaceAll("-", "_");
