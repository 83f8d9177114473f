import { Kbd, Modal } from "@mantine/core";
import { useState } from "react";
import { activeKeys } from "./keys.ts";

export function KeyHelp({ onClose }: { readonly onClose: () => void }) {
  const [keys] = useState(activeKeys);
  return (
    <Modal opened onClose={onClose} title="Keys" size="sm">
      <table>
        <tbody>
          {keys.map(({ key, does }) => (
            <tr key={key}>
              <td style={{ paddingRight: 16, paddingBottom: 8 }}>
                <Kbd>{key.replace("Control+", "Ctrl ")}</Kbd>
              </td>
              <td style={{ paddingBottom: 8 }}>{does}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </Modal>
  );
}
