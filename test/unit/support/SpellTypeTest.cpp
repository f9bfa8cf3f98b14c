// Tests that types are spelled as in IR, those of scalars included, whose text is put together without a printer.
#include "passes/support/SpellType.h"

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/Support/raw_ostream.h"
#include <gtest/gtest.h>

using namespace mlir;
using namespace tilewright;

TEST(SpellType, is_the_text_of_ir) {
  MLIRContext context;
  Type f32 = Float32Type::get(&context);
  for (Type type : {f32, Type(BFloat16Type::get(&context)), Type(Float8E4M3FNType::get(&context)),
                    Type(FloatTF32Type::get(&context)), Type(IntegerType::get(&context, 1)),
                    Type(IntegerType::get(&context, 8, IntegerType::Signed)),
                    Type(IntegerType::get(&context, 8, IntegerType::Unsigned)), Type(IndexType::get(&context)),
                    Type(ComplexType::get(f32)), Type(RankedTensorType::get({2, 3}, f32))}) {
    std::string printed;
    llvm::raw_string_ostream(printed) << type;
    EXPECT_EQ(spell(type), printed);
  }
}
