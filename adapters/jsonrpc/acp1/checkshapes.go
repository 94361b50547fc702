package acp1

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"time"
)

// The shapes of everything an agent sends in version 1, as far as this agent
// sends it. They are functions, so that nothing has to be kept.

// notificationShape returns the shape of a notification's params.
func notificationShape(method string, zeroclaw bool) shape {
	switch method {
	case methodUpdate:
		return record(must("sessionId", sessionIDShape), must("update", updateShape(zeroclaw)))
	case "$/cancel_request":
		return record(must("requestId", anyString))
	case methodQueue:
		reason := enum("end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled")
		return record(
			must("sessionId", sessionIDShape), may("running", fullString),
			must("queued", list(record(must("turnId", fullString), must("text", anyString)))),
			may("ended", record(must("turnId", fullString), may("stopReason", reason), may("error", fullString))),
		)
	}
	return func(json.RawMessage) error { return fmt.Errorf("no notification of the protocol") }
}

// requestShape returns the shape of a request's params.
func requestShape(method string) shape {
	switch method {
	case methodPermission:
		return record(
			must("sessionId", sessionIDShape),
			must("toolCall", record(callFields(may("title", anyString))...)),
			must("options", list(record(
				must("optionId", fullString), must("name", fullString),
				must("kind", enum("allow_once", "allow_always", "reject_once", "reject_always")),
			))),
		)
	case methodReadFile:
		return record(must("sessionId", sessionIDShape), must("path", absolute), may("line", count), may("limit", count))
	case methodWriteFile:
		return record(must("sessionId", sessionIDShape), must("path", absolute), must("content", anyString))
	}
	return func(json.RawMessage) error { return fmt.Errorf("no request of the protocol") }
}

// resultMethods are the methods that have a result.
func resultMethods() []string {
	return []string{
		"initialize", "authenticate", "logout", methodNew, methodLoad, methodResume, methodList, methodDelete,
		"session/prompt", "session/cancel", "session/close", "session/stop", methodUpdate, "session/event",
		methodAwait, methodObserve, methodUnobserve, "session/set_mode", "session/set_config_option",
	}
}

// resultShape returns the shape of a method's result; nil for other methods.
func resultShape(method string, zeroclaw bool) shape {
	extra := func(fields ...field) []field {
		if zeroclaw {
			return fields
		}
		return nil
	}
	id := must("sessionId", sessionIDShape)
	switch method {
	case "initialize":
		return initializeShape()
	case methodNew:
		return record(append(extra(must("workspaceDir", absolute)), append(controls(), id)...)...)
	case methodLoad, methodResume:
		return record(controls()...)
	case "session/set_config_option":
		return record(must("configOptions", list(optionShape())))
	case methodDelete, "session/set_mode", "authenticate", "logout", "session/cancel", "session/close", methodObserve, methodUnobserve:
		return record()
	case methodList:
		return record(must("sessions", list(rowShape())), may("nextCursor", fullString))
	case "session/prompt", methodAwait:
		return record(append(extra(id, must("content", anyString)),
			must("stopReason", enum("end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled")))...)
	case "session/stop":
		return record(extra(id, must("stopped", boolean))...)
	case methodUpdate, "session/event":
		return record(extra(id, must("type", anyString), must("status", enum("processed")))...)
	}
	return nil
}

// controls are the modes and options of a session. This agent has none; what
// translates another's has.
func controls() []field {
	mode := record(must("id", fullString), must("name", fullString), may("description", anyString))
	return []field{
		may("modes", record(must("currentModeId", fullString), must("availableModes", list(mode)))),
		may("configOptions", list(optionShape())),
	}
}

func optionShape() shape {
	return record(
		must("type", enum("select")), must("id", fullString), must("name", fullString), may("description", fullString),
		may("category", fullString), must("currentValue", fullString),
		must("options", list(record(must("value", fullString), must("name", fullString)))),
	)
}

func initializeShape() shape {
	yes := record()
	return record(
		must("protocolVersion", count),
		may("agentCapabilities", record(
			may("loadSession", boolean),
			may("promptCapabilities", record(may("image", boolean), may("audio", boolean), may("embeddedContext", boolean))),
			may("mcpCapabilities", record(may("http", boolean), may("sse", boolean))),
			may("sessionCapabilities", record(
				may("list", yes), may("delete", yes), may("additionalDirectories", yes), may("resume", yes), may("close", yes),
			)),
			may("auth", record(may("logout", yes))),
		)),
		may("authMethods", list(record(
			may("type", enum("terminal")), must("id", fullString), must("name", fullString), may("description", anyString),
			may("args", list(anyString)), may("env", anyObject),
		))),
		may("agentInfo", record(must("name", fullString), may("title", anyString), must("version", fullString))),
	)
}

func rowShape() shape {
	return record(
		must("sessionId", sessionIDShape), must("cwd", absolute), may("additionalDirectories", list(absolute)),
		may("title", fullString), may("updatedAt", timestamp),
	)
}

func timestamp(raw json.RawMessage) error {
	s, _ := stringOf(raw)
	if _, err := time.Parse(time.RFC3339Nano, s); err != nil {
		return fmt.Errorf("%s is no time of ISO 8601", raw)
	}
	return nil
}

// updateShape is the sealed list of update kinds.
func updateShape(zeroclaw bool) shape {
	chunk := []field{must("content", blockShape()), may("messageId", fullString)}
	change := callFields(may("title", anyString))
	if zeroclaw {
		change = append(change, may("body", anyString))
	}
	return tagged("sessionUpdate", map[string][]field{
		"user_message_chunk":  chunk,
		"agent_message_chunk": chunk,
		"agent_thought_chunk": chunk,
		"tool_call":           callFields(must("title", fullString)),
		"tool_call_update":    change,
		"plan": {must("entries", list(record(
			must("content", anyString), must("priority", enum("high", "medium", "low")),
			must("status", enum("pending", "in_progress", "completed")),
		)))},
		"available_commands_update": {must("availableCommands", list(record(
			must("name", fullString), must("description", anyString), may("input", record(must("hint", anyString))),
		)))},
		"current_mode_update":  {must("currentModeId", fullString)},
		"config_option_update": {must("configOptions", list(optionShape()))},
		"session_info_update":  {may("title", orNull(anyString)), may("updatedAt", orNull(timestamp))},
		"usage_update": {must("used", count), must("size", count), may("cost", record(
			must("amount", number), must("currency", fullString)))},
		"compaction_update": {
			must("compactionId", fullString), must("status", enum("in_progress", "completed", "failed", "cancelled")),
			may("summary", list(blockShape())), may("error", anyString),
		},
		"compaction_summary_chunk": {must("compactionId", fullString), must("content", blockShape())},
		"notice": {
			must("severity", enum("info", "warning", "error")), must("title", fullString),
			may("description", anyString),
		},
	})
}

// callFields are the members a call has wherever it is told of.
func callFields(title field) []field {
	return []field{
		must("toolCallId", fullString), title, may("name", fullString),
		may("kind", enum("read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode", "other")),
		may("status", enum("pending", "in_progress", "completed", "failed")),
		may("content", list(callContentShape())),
		may("locations", list(record(must("path", absolute), may("line", count)))),
		may("rawInput", anyValue), may("rawOutput", anyValue),
	}
}

func callContentShape() shape {
	return tagged("type", map[string][]field{
		"content":  {must("content", blockShape())},
		"diff":     {must("path", absolute), must("oldText", orNull(anyString)), must("newText", anyString)},
		"terminal": {must("terminalId", fullString)},
	})
}

func blockShape() shape {
	mime := may("mimeType", fullString)
	return tagged("type", map[string][]field{
		"text":  {must("text", anyString)},
		"image": {must("data", base64Shape), must("mimeType", fullString), may("uri", anyString)},
		"audio": {must("data", base64Shape), must("mimeType", fullString)},
		"resource_link": {
			must("uri", anyString), must("name", anyString), may("title", anyString),
			may("description", anyString), mime, may("size", count),
		},
		"resource": {must("resource", func(raw json.RawMessage) error {
			if _, ok := objectOf(raw)["blob"]; ok {
				return record(must("uri", anyString), mime, must("blob", base64Shape))(raw)
			}
			return record(must("uri", anyString), mime, must("text", anyString))(raw)
		})},
	})
}

func base64Shape(raw json.RawMessage) error {
	s, ok := stringOf(raw)
	if _, err := base64.StdEncoding.Strict().DecodeString(s); err != nil || !ok {
		return fmt.Errorf("is not base64")
	}
	return nil
}
