import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { brotliCompress, constants, gzip } from "node:zlib";

const COMPRESSED = /\.(js|css|svg|json)$/;

/** Writes `<file>.br` and `<file>.gz` beside each text: compressed once, when built, and never while somebody waits. */
export async function compressBelow(folder: string): Promise<void> {
  const names = (await readdir(folder, { recursive: true })).filter((name) => COMPRESSED.test(name));
  await Promise.all(
    names.map(async (name) => {
      const path = join(folder, name);
      const text = await readFile(path);
      const params = { [constants.BROTLI_PARAM_QUALITY]: 10, [constants.BROTLI_PARAM_SIZE_HINT]: text.length };
      await writeFile(`${path}.br`, await promisify(brotliCompress)(text, { params }));
      await writeFile(`${path}.gz`, await promisify(gzip)(text, { level: 9 }));
    }),
  );
}
