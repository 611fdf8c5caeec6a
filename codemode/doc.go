// Package codemode gives a model one tool that runs a script, in which each tool that the session
// may use is a function. Providers and clients call this code mode, or programmatic tool calling.
//
//	mgr.AddTools("code", codemode.Tool(nil))
//
// The model then writes one script in place of many calls, and reads what the script returns in
// place of all results:
//
//	const {content} = await tools.mcp_files__read_text_file({path: "orders.json"});
//	const open = JSON.parse(content).filter(o => o.status === "open");
//	for (const o of open) await tools.mcp_mail__send({to: o.mail, text: "Your order " + o.id});
//	return open.length;
//
// In a script, search("send mail") returns the signatures of tools, with types from their schemas.
// Each call of a tool is [mcphybrid.Session.CallFromCode], so access lists, trust, validation,
// middleware, limits and events apply to it as to the calls of the model. Nothing else leads out
// of a script: it has no files, no network, no clock, no timers and no chance.
//
// The script runs in this process, in an interpreter written in Go. What it may take of time and
// memory is bounded by [Options]. A script that is at a limit ends with an error that says which.
package codemode
