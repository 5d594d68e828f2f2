/* Template ATTEND. */
#include "codegen/llvm/emit_rows.h"
#include "codegen/llvm/templates.h"

void
pawl_emit_attend(struct pawl_emit *e)
{
	pawl_emit_refuse(e, "attention");
}
