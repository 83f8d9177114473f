const PLURALS = { "compute tray": "compute trays", switch: "switches", "power shelf": "power shelves" } as const;

export const devicesWord = (kind: keyof typeof PLURALS): string => PLURALS[kind];
