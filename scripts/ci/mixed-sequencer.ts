import { BaseSequencer, type TestSpecification } from "vitest/node";

/**
 * Where the last file of a project is begun, as a share of the way. Long files that were begun last would be waited for by workers that
 * have nothing left to do; unit tests take a moment each.
 */
const ENDS: Readonly<Record<string, number>> = { chaos: 0.75, e2e: 0.75, browser: 0.75, integration: 0.9, unit: 1 };

/**
 * The files of all projects side by side, each project's spread over the whole run. One project after the other, the cores would be
 * too few for the processes of chaos tests at first, and idle later, while tests wait for what takes its time.
 */
export class MixedSequencer extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    return mix(await super.sort(files), ({ project }) => project.name);
  }
}

export function mix<T>(files: readonly T[], projectOf: (file: T) => string): T[] {
  const placed = [...Map.groupBy(files, projectOf)].flatMap(([project, its]) =>
    its.map((file, index) => ({ file, place: (index / its.length) * (ENDS[project] ?? 1) })),
  );
  return placed.sort((a, b) => a.place - b.place).map(({ file }) => file);
}
