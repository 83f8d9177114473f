/** A step of an installation, as the boot server gives it out. */
export interface NetworkStep {
  readonly sequence: number;
  readonly type: string;
  readonly isDone: boolean;
  readonly isLast: boolean;
  readonly config: Readonly<Record<string, string>>;
}

export interface NetworkSteps {
  /** Behind a reboot that a step asked for. */
  readonly resumes: boolean;
  readonly steps: readonly NetworkStep[];
}

/** Reads what `POST /api/v1/boot/steps` answers. Throws on what was cut off. */
export function readStepLines(text: string): NetworkSteps {
  const lines = text.trimEnd().split("\n");
  if (lines[0] !== "millwright-steps 1" || lines.at(-1) !== "end") throw new Error("the steps cannot be read");
  const steps: { words: readonly string[]; config: Record<string, string> }[] = [];
  for (const line of lines) {
    const [verb, ...words] = line.split(" ");
    if (verb === "step") steps.push({ words, config: {} });
    const at = steps.at(-1);
    if (verb === "set" && at !== undefined)
      at.config[words[0] ?? ""] = Buffer.from(words[1] ?? "", "base64").toString();
  }
  return {
    resumes: lines.includes("resumes"),
    steps: steps.map(({ words, config }, index) => ({
      sequence: Number(words[0]),
      type: words[1] ?? "",
      isDone: words[7] === "done",
      isLast: index === steps.length - 1,
      config,
    })),
  };
}
